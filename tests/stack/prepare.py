"""Bring Kafka's jars and PostgreSQL onto this machine, where that is possible."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tests.stack import kafka, postgres
from tests.stack.process import Missing, StackError

POM: Final = Path(__file__).with_name("pom.xml")
MAVEN_SECONDS_MAX: Final = 600
APT_SECONDS_MAX: Final = 600
PACKAGES: Final = ("postgresql",)


def prepare(say: Callable[[str], None]) -> list[str]:
    """Fetch what is missing, and return one line for each thing that could not be had."""
    missing = []
    for step in (_kafka, _postgres):
        try:
            step(say)
        except StackError as error:
            missing.append(str(error))
    return missing


def _kafka(say: Callable[[str], None]) -> None:
    _check_java()
    if not kafka.COMPLETE.exists():
        say(f"fetching Kafka {kafka.VERSION} with Maven (about 60 MB, once)")
        _fetch_jars()
    if not kafka.CLASS_ARCHIVE.exists():
        say("starting the broker once, to start it faster from now on")
        kafka.archive_classes()


def _check_java() -> None:
    java = shutil.which("java")
    if java is None:
        msg = f"no java: Kafka's tests need Java {kafka.JAVA_MINIMUM} or newer and Maven"
        raise Missing(msg)
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(?:1\.)?(\d+)', said)
    if version is None or int(version[1]) < kafka.JAVA_MINIMUM:
        msg = f"{java} is too old: Kafka needs Java {kafka.JAVA_MINIMUM} or newer"
        raise Missing(msg)


def _fetch_jars() -> None:
    maven = shutil.which("mvn")
    if maven is None:
        msg = "no mvn: Kafka's tests need Maven to fetch the broker"
        raise Missing(msg)
    options = [f"-DoutputDirectory={kafka.LIBS}", "-DincludeScope=runtime"]
    version = f"-Dkafka.version={kafka.VERSION}"
    goal = "dependency:copy-dependencies"
    _run([maven, "-q", "-B", "-f", str(POM), version, goal, *options], MAVEN_SECONDS_MAX)
    kafka.COMPLETE.touch()


def _postgres(say: Callable[[str], None]) -> None:
    try:
        postgres.find_binaries()
    except Missing:
        apt = shutil.which("apt-get")
        if apt is None or os.geteuid() != 0:
            raise
        say("installing PostgreSQL with apt")
        _run([apt, "update", "-qq"], APT_SECONDS_MAX)
        install = [apt, "install", "-qq", "--yes", "--no-install-recommends", *PACKAGES]
        _run(install, APT_SECONDS_MAX)
        postgres.find_binaries()


def _run(argv: Sequence[str], seconds: int) -> None:
    """Run a tool that is silent unless it fails."""
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, check=False, timeout=seconds, env=env
        )
    except subprocess.TimeoutExpired as error:
        msg = f"{argv[0]} did not end within {seconds} s"
        raise StackError(msg) from error
    if done.returncode != 0:
        msg = f"{' '.join(argv[:3])} … failed:\n{(done.stdout + done.stderr)[-2000:]}"
        raise StackError(msg)
