"""${message}.

Say here why, and what older code sees.

Policy: number and verb in the file's name (`--rev-id 0002 -m "add snapshot"`). Reviewed SQL: never
what autogenerate left, never an import of today's tables.py. Expand in one release, contract in a
later one. `readable_from` is the oldest code revision that may still run on this schema. No change
of data mixed with a change of schema. A `downgrade` that works. Both databases. Delete this
paragraph when you have done what it says.

Revision ID: ${up_revision}
Revises: ${down_revision | comma,n}
"""

from alembic import op
${imports if imports else ""}
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
readable_from = ${repr(up_revision)}  # Lower it to the oldest code that neither reads nor writes what is new.


def upgrade() -> None:
    ${upgrades if upgrades else "raise NotImplementedError"}


def downgrade() -> None:
    ${downgrades if downgrades else "raise NotImplementedError"}
