"""Which home and catalog a command works on."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from spark_trickle.api import Trickle

HomeOption = Annotated[
    Path | None,
    typer.Option("--home", help="Folder of warehouse and catalog. [env: TRICKLE_HOME; default: ./.trickle]"),
]
CatalogOption = Annotated[
    str | None,
    typer.Option(
        "--catalog",
        metavar="URL",
        help="Database of the catalog. [env: TRICKLE_CATALOG; default: in the home]",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@dataclass(frozen=True, slots=True)
class Given:
    """The options every command shares, as given before or after its name."""

    home: Path | None = None
    catalog: str | None = None
    json: bool = False

    def over(self, earlier: "Given") -> "Given":
        return Given(self.home or earlier.home, self.catalog or earlier.catalog, self.json or earlier.json)


@dataclass(frozen=True, slots=True)
class Place:
    home: Path
    catalog: str | None

    @classmethod
    def of(cls, given: Given, environment: Mapping[str, str]) -> "Place":
        """Options first, then the environment, then the default; an empty variable counts as unset."""
        home = given.home or Path(environment.get("TRICKLE_HOME") or ".trickle")
        return cls(home.expanduser(), given.catalog or environment.get("TRICKLE_CATALOG") or None)


@contextmanager
def open_trickle(place: Place, on_step: Callable[[str], None], *, creates: bool) -> "Iterator[Trickle]":
    """Spark starts later, if a verb asks for it. Where there is no home, only what `creates` makes one."""
    from spark_trickle.api import Trickle

    with TemporaryDirectory(prefix="trickle-") as empty:
        catalog = place.catalog
        if catalog is None and not creates and not place.home.exists():
            catalog = f"sqlite:///{empty}/catalog.db"
        with Trickle(home=place.home, catalog=catalog, on_step=on_step, lasting=False) as trickle:
            yield trickle
