"""What the simulated API server serves: the watched kinds, and Events."""

from dataclasses import dataclass
from typing import Final

from decklog.objects.kinds import KINDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A kind under the path at which it is served."""

    kind: str
    group: str
    version: str
    plural: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified_name(self) -> str:
        """The name that the server's messages use: `pods`, `replicasets.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


RESOURCES: Final = {
    resource.kind: resource
    for resource in (
        *(
            Resource(
                kind=kind.name,
                group=kind.group,
                version=kind.version,
                plural=kind.plural,
                namespaced=kind.namespaced,
            )
            for kind in KINDS
        ),
        Resource(
            kind="Event", group="events.k8s.io", version="v1", plural="events", namespaced=True
        ),
    )
}
"""By kind; a kind's name is unique among those served."""
