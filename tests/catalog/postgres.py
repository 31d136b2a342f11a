"""A real PostgreSQL server for the tests, started once per pytest session.

Import `postgres_server` into a conftest to use it in another test package; the server is shared.
"""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest

REQUIRED = "TRICKLE_TEST_REQUIRE_POSTGRES"


@dataclass
class PostgresServer:
    """Listens on a socket in its own folder only, so there is no port to collide on."""

    binaries: Path
    folder: Path
    user: str
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def start(self) -> None:
        if os.geteuid() == 0:
            shutil.chown(self.folder, self.user)
        self._run(
            "initdb", "--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C", f"--username={self.user}"
        )
        options = f"-F -k {self.folder} -c listen_addresses='' -c timezone=Asia/Kathmandu"
        self._run("pg_ctl", "--wait", f"--log={self.folder / 'log'}", f"--options={options}", "start")

    def stop(self) -> None:
        """`pg_ctl` ends the process whose id the server wrote into its own folder."""
        self._run("pg_ctl", "--wait", "--mode=immediate", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str = "postgres", user: str = "") -> str:
        return f"postgresql://{user or self.user}@/{database}?host={self.folder}"

    def fresh_database(self) -> str:
        """The URL of a new, empty database."""
        name = f"test_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def fresh_schema(self) -> str:
        """As good as a new database for one test, and made in a fraction of the time."""
        name = f"test_{next(self._numbers)}"
        self.execute(f"CREATE SCHEMA {name}")
        return f"{self.url()}&options=-csearch_path%3D{name}"

    def execute(self, sql: str, database: str = "postgres") -> None:
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            connection.execute(sql.encode())

    def _run(self, program: str, *arguments: str) -> None:
        # The server refuses to run as root.
        identity: dict[str, Any] = {}
        if os.geteuid() == 0:
            account = pwd.getpwnam(self.user)
            identity = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        command = [str(self.binaries / program), f"--pgdata={self.folder / 'data'}", *arguments]
        # The server would keep a pipe open, so its output goes to a file.
        with tempfile.TemporaryFile() as output:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=self.folder, **identity
            )
            if done.returncode != 0:
                output.seek(0)
                raise RuntimeError(f"{program} failed:\n{output.read().decode()}")


def find_binaries() -> Path | None:
    """The folder of `initdb` and `pg_ctl`; distributions keep it off the PATH."""
    on_path = shutil.which("initdb")
    candidates = [Path(on_path).resolve().parent] if on_path else []
    candidates += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((c for c in candidates if (c / "initdb").exists() and (c / "pg_ctl").exists()), None)


def started(binaries: Path) -> PostgresServer:
    """A new server; stop it."""
    server = PostgresServer(binaries, Path(tempfile.mkdtemp(prefix="trickle-pg-")), _account())
    server.start()
    return server


_SERVER = pytest.StashKey[PostgresServer]()


@pytest.fixture(scope="session")
def postgres_server(pytestconfig: pytest.Config) -> PostgresServer:
    """The one server of this session, whichever test package asks first."""
    if _SERVER in pytestconfig.stash:
        return pytestconfig.stash[_SERVER]
    binaries = find_binaries()
    if binaries is None:
        message = f"PostgreSQL is not installed: no initdb on the PATH or in /usr/lib/postgresql ({REQUIRED}=1 makes this fail)"
        if os.environ.get(REQUIRED) == "1":
            pytest.fail(message)
        pytest.skip(message)
    server = started(binaries)
    pytestconfig.add_cleanup(server.stop)
    pytestconfig.stash[_SERVER] = server
    return server


def _account() -> str:
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid()).pw_name
    accounts = {account.pw_name for account in pwd.getpwall()}
    return "postgres" if "postgres" in accounts else "nobody"
