"""The ledger over SQL: PostgreSQL for a cluster, SQLite for the embedded default.

`sql.py` holds the one adapter, `SqlLedger`; `tables.py` declares every table once, for both
databases; `migrate.py` brings a database to that schema. SQLAlchemy, Alembic and psycopg are
known here and nowhere else (the embedded log shares SQLAlchemy). Services see the port only.
"""
