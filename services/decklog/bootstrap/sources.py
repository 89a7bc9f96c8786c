"""Where settings come from, and what is said about one that is wrong."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    NestedSecretsSettingsSource,
    PydanticBaseSettingsSource,
    SettingsError,
)

from decklog.bootstrap.settings import DELIMITER, ENV_PREFIX, SECRETS_FOLDER, Settings
from decklog.core.errors import BadConfiguration

CONFIG_VARIABLE: Final = "DECKLOG_CONFIG"
"""Names the settings file where no flag does."""
NOT_SETTINGS: Final = frozenset({CONFIG_VARIABLE, "DECKLOG_DATA"})
"""Variables of ours that are flags of the command line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """A variable that looks like a setting, and is none."""

    name: str
    suggestion: str | None

    def __str__(self) -> str:
        hint = f"; did you mean {self.suggestion}?" if self.suggestion else ""
        return f"{self.name} is not a setting{hint}"


def load_settings(
    config: Path | None = None,
    flags: Mapping[str, Any] | None = None,
    secrets_folder: Path = SECRETS_FOLDER,
) -> Settings:
    """Read every source once. `flags` are nested like the settings, and win."""
    if config is None and os.environ.get(CONFIG_VARIABLE):
        config = Path(os.environ[CONFIG_VARIABLE])
    file = {} if config is None else _read(config)

    class Loaded(Settings):
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,
            file_secret_settings: PydanticBaseSettingsSource,
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            secrets = NestedSecretsSettingsSource(
                file_secret_settings, secrets_dir=secrets_folder, secrets_dir_missing="ok"
            )
            return (init_settings, env_settings, secrets, InitSettingsSource(settings_cls, file))

    try:
        return Loaded(**(flags or {}))
    except ValidationError as error:
        raise BadConfiguration("; ".join(_findings(error, config))) from error
    except SettingsError as error:
        msg = f"cannot read the settings: {error}"
        raise BadConfiguration(msg) from error


def unknown_variables() -> list[Unknown]:
    """Return the `DECKLOG_…` variables that no setting reads."""
    known = {variable(path) for path in setting_paths(Settings)} | NOT_SETTINGS
    given = [name for name in os.environ if name.upper().startswith(ENV_PREFIX)]
    return [
        Unknown(name=name, suggestion=_nearest(name.upper(), known))
        for name in sorted(given)
        if name.upper() not in known
    ]


def setting_paths(
    model: type[BaseModel], before: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    """Yield the path of each setting: a section's is only a part of others."""
    for name, field in model.model_fields.items():
        path = (*before, name)
        section = field.annotation
        if isinstance(section, type) and issubclass(section, BaseModel):
            yield from setting_paths(section, path)
        else:
            yield path


def variable(path: tuple[str, ...]) -> str:
    return ENV_PREFIX + DELIMITER.join(path).upper()


def _read(path: Path) -> dict[str, Any]:
    from decklog.adapters.manifests import read_document

    document = read_document(path)
    if not isinstance(document, dict):
        msg = f"{str(path)!r} holds no settings: a mapping of sections is wanted"
        raise BadConfiguration(msg)
    return document


def _findings(error: ValidationError, config: Path | None) -> Iterator[str]:
    """Say each error in words, naming where the value came from and never the value."""
    for one in error.errors(include_input=False, include_url=False):
        path = tuple(str(part) for part in one["loc"])
        name = variable(path)
        spelled = {each.upper(): each for each in os.environ}
        where = spelled.get(name) or ".".join(path)
        if name not in spelled and config is not None:
            where += f" in {str(config)!r}"
        if one["type"] != "extra_forbidden":
            yield f"setting {where}: {one['msg'][:1].lower()}{one['msg'][1:]}"
            continue
        paths = {part for each in setting_paths(Settings) for part in (each, each[:1])}
        if name in spelled:
            near = _nearest(name, {variable(each) for each in paths})
        else:
            near = _nearest(".".join(path), {".".join(each) for each in paths})
        yield f"{where} is not a setting" + (f"; did you mean {near}?" if near else "")


def _nearest(name: str, known: set[str]) -> str | None:
    return next(iter(get_close_matches(name, sorted(known), n=1, cutoff=0.7)), None)
