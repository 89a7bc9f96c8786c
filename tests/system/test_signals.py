"""Asked to stop: the first signal is a request, the second one an order."""

import signal
import subprocess
import sys
import time
from typing import Final

import pytest

from tests.stack.process import free_ports
from tests.system.commands import start_decklog
from tests.system.processes import answers, wait_until

STUBBORN: Final = """\
import time
from decklog.adapters.clock import SystemClock
from decklog.bootstrap.stopping import Stop
Stop(SystemClock()).on_signals()
print("ready", flush=True)
while True:
    time.sleep(0.05)
"""


@pytest.mark.parametrize(("number", "want"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_the_second_signal_ends_a_process_at_once(number: signal.Signals, want: int) -> None:
    running = subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    assert running.stdout.readline() == "ready\n"
    running.send_signal(number)
    time.sleep(0.3)
    assert running.poll() is None
    running.send_signal(number)
    assert running.wait(timeout=5) == want
    running.stdout.close()


def test_a_simulated_cluster_ends_with_0_and_had_printed_its_address() -> None:
    (port, operations) = free_ports(2)
    arguments = ("sim", "serve", "--listen", f"127.0.0.1:{port}", "--nodes", "2", "--rate", "1")
    running = start_decklog(*arguments, env={"DECKLOG_OPERATIONS__PORT": str(operations)})
    assert running.stdout is not None
    assert running.stdout.readline() == f"http://127.0.0.1:{port}\n"
    running.send_signal(signal.SIGTERM)
    _, said = running.communicate(timeout=15)
    assert (running.returncode, said) == (0, "")


def test_a_service_that_still_waits_for_its_broker_stops_too() -> None:
    (port, operations) = free_ports(2)
    env = {
        "DECKLOG_KAFKA__BOOTSTRAP": f"127.0.0.1:{port}",
        "DECKLOG_PG__HOST": "127.0.0.1",
        "DECKLOG_OPERATIONS__PORT": str(operations),
    }
    running = start_decklog("run", "scheduler", env=env)
    url = f"http://127.0.0.1:{operations}/livez"
    wait_until(lambda: answers(url), "the scheduler is alive", 30)
    running.send_signal(signal.SIGTERM)
    _, said = running.communicate(timeout=20)
    assert (running.returncode, said) == (0, "")
