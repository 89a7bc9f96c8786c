#!/usr/bin/env bash
# Runs once, when the database's data folder is empty: the image's entry point starts it.
# It creates the two roles that services use, with their passwords; migration 0001 would create
# them without, and grants what they may do.
set -euo pipefail

secrets=$(dirname "$POSTGRES_PASSWORD_FILE")

for role in writer reader; do
  psql --quiet --no-psqlrc --set ON_ERROR_STOP=1 \
    --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" \
    --set role="decklog_$role" --set password="$(cat "$secrets/pg_$role")" <<'SQL'
CREATE ROLE :"role" LOGIN PASSWORD :'password';
SQL
done
