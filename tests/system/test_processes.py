"""Every service a process, over Kafka and PostgreSQL, killed at random moments."""

import random
import re
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from decklog.ports.ledger import DecisionFilter
from tests.system.processes import SERVICES, Processes, make_processes, wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

PODS: Final = 200
KILLS: Final = 8
QUIET_SECONDS: Final = 60
TAKEOVER_SECONDS: Final = 10


def exist(processes: Processes, count: int) -> bool:
    return len(processes.pods()) >= count


def test_services_killed_at_random_moments_lose_nothing_and_bind_nothing_twice(
    tmp_path: Path, kafka_bootstrap: str, postgres_dsn: str
) -> None:
    chance = random.Random(7)
    sim = ("--nodes", "12", "--pods", str(PODS), "--rate", "25")
    with make_processes(
        tmp_path, bootstrap=kafka_bootstrap, dsn=postgres_dsn, stream="killed", sim=sim
    ) as processes:
        for name in SERVICES:
            processes.start(name)
        with processes.ledger() as ledger:
            processes.wait_ready("watcher")
            for number in range(KILLS):
                wanted = (number + 1) * PODS // (KILLS + 1) - chance.randrange(PODS // KILLS)
                wait_until(partial(exist, processes, wanted), f"{wanted} pods exist", QUIET_SECONDS)
                name = chance.choice(SERVICES)
                processes.kill(name)
                processes.start(name)
            wait_until(lambda: len(processes.pods()) == PODS, "all pods exist", QUIET_SECONDS)
            explained: set[str] = set()

            def at_rest() -> bool:
                explained.update(
                    row.pod for row in ledger.select("killed", where=_UNSCHEDULABLE, limit=10_000)
                )
                unbound = {name for name, node in processes.pods().items() if not node}
                return unbound <= explained and processes.at_rest(ledger, 1)

            wait_until(at_rest, "all pods are bound or explained", QUIET_SECONDS)
            processes.assert_bound_once(ledger)
            assert sum(map(bool, processes.pods().values())) > PODS // 2
        verified = processes.run("verify")
        assert "identical" in verified.stdout, verified.stdout


def test_two_schedulers_started_at_once_lead_one_after_the_other(
    tmp_path: Path, kafka_bootstrap: str, postgres_dsn: str
) -> None:
    sim = ("--nodes", "5", "--pods", "0")
    with make_processes(
        tmp_path, bootstrap=kafka_bootstrap, dsn=postgres_dsn, stream="two", sim=sim
    ) as processes:
        for name in ("watcher", "binder"):
            processes.start(name)
        processes.start_another("first", "scheduler")
        processes.start_another("second", "scheduler")
        with processes.ledger() as ledger:
            processes.create("pods", _pod("before"), "default")
            wait_until(lambda: bool(processes.pods().get("before")), "bound", QUIET_SECONDS)
            head = ledger.head("two")
            assert head is not None
            leader = re.sub(r"-\d+.*", "", head.holder)
            processes.kill(leader)
            processes.create("pods", _pod("after"), "default")
            wait_until(
                lambda: bool(processes.pods().get("after")),
                "bound by the standby",
                TAKEOVER_SECONDS,
            )
            again = ledger.head("two")
            assert again is not None
            assert again.generation == head.generation + 1
            assert not again.holder.startswith(leader)
            wait_until(lambda: processes.at_rest(ledger, 2), "at rest", QUIET_SECONDS)
            processes.assert_bound_once(ledger)


def test_a_service_that_is_asked_to_stop_ends_with_0(
    tmp_path: Path, kafka_bootstrap: str, postgres_dsn: str
) -> None:
    with make_processes(
        tmp_path,
        bootstrap=kafka_bootstrap,
        dsn=postgres_dsn,
        stream="stopped",
        sim=("--nodes", "2", "--pods", "5"),
    ) as processes:
        for name in SERVICES:
            processes.start(name)
        with processes.ledger() as ledger:
            wait_until(lambda: processes.at_rest(ledger, 1), "at rest", QUIET_SECONDS)
        assert {name: processes.stop(name) for name in SERVICES} == dict.fromkeys(SERVICES, 0)


_UNSCHEDULABLE: Final = DecisionFilter(kind="PodUnschedulable")


def _pod(name: str) -> dict[str, object]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "10m"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulerName": "decklog", "containers": [container]},
    }
