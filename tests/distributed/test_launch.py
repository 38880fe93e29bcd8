"""`ember-ml launch` on one machine: what ranks are told, what is shown, and how every job ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ember_ml.distributed import start_agents as starting
from ember_ml.distributed.hosts import LOCAL, Host, places, read_hosts
from ember_ml.distributed.launch import launch as run
from ember_ml.errors import LaunchError
from tests.distributed.launching import TOGETHER, Launched, all_end, launch

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it needs process groups")

# engines are not needed where only processes are watched; MLX starts fastest, and NumPy would need mpirun
QUICK = ("--backend", "mlx")
PIDS = "import os, sys, time\nprint(os.getpid(), flush=True)\n"


@pytest.fixture(autouse=True)
def no_libraries(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Ranks inherit no place from whatever runs the tests."""
    for name in ("EMBER_ML_RANK", "EMBER_ML_WORLD_SIZE", "RANK", "WORLD_SIZE", "MLX_RANK", "MLX_HOSTFILE"):
        monkeypatch.delenv(name, raising=False)


def test_two_ranks_compute_together(backend: str, tmp_path: Path) -> None:
    shown = launch(tmp_path, TOGETHER, "-n", "2", "--backend", backend)
    assert shown.code == 0, shown.err
    assert "[0] rank 0 of 2 has added up 2.0" in shown.out
    assert "[1] rank 1 of 2 has added up 2.0" in shown.out
    assert "ember-ml launch:" not in shown.err


def test_a_killed_rank_ends_the_job_and_is_named(backend: str, tmp_path: Path) -> None:
    shown = launch(tmp_path, TOGETHER, "-n", "2", "--backend", backend, "--timeout", "30", arguments=("SIGKILL",))
    assert shown.code == 128 + signal.SIGKILL
    assert "rank 1 was killed by SIGKILL" in shown.err.partition("ember-ml launch: failed")[2].splitlines()[0]
    then = next(line for line in shown.err.splitlines() if "then rank 0" in line)
    assert re.search("PeerLost: .*all_reduce.*: rank 1 was killed by SIGKILL", then)
    if backend != "numpy":  # gloo and the ring raise at once; MPI waits for ever
        assert "all_reduce cannot finish" in then


def test_the_script_gets_its_arguments_and_its_place(tmp_path: Path) -> None:
    script = """
import os, sys
names = ("EMBER_ML_RANK", "EMBER_ML_WORLD_SIZE", "EMBER_ML_LOCAL_RANK", "EMBER_ML_BACKEND", "RANK", "WORLD_SIZE",
         "LOCAL_RANK", "MLX_RANK", "EMBER_ML_TIMEOUT", "EMBER_ML_RESTART")
print(*(os.environ[name] for name in names), *sys.argv[1:])
host, port = os.environ["EMBER_ML_COORDINATOR"].split(":")
assert (host, port) == (os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"]) and int(port) > 0
assert len(eval(open(os.environ["MLX_HOSTFILE"]).read())) == 2
"""
    shown = launch(tmp_path, script, "-n", "2", *QUICK, "--timeout", "100", arguments=("--lr", "0.1", "-n", "9"))
    assert shown.code == 0, shown.err
    expected = ["[0] 0 2 0 mlx 0 2 0 0 70.0 0 --lr 0.1 -n 9", "[1] 1 2 1 mlx 1 2 1 1 70.0 0 --lr 0.1 -n 9"]
    assert sorted(shown.out.splitlines()) == expected


def test_the_rank_that_failed_first_is_shown_with_its_traceback_and_code(tmp_path: Path) -> None:
    script = """
import os, time
if os.environ["EMBER_ML_RANK"] == "2":
    time.sleep(0.2)
    try:
        1 / 0
    except ZeroDivisionError as error:
        raise ValueError("the reason") from error
time.sleep(60)
"""
    shown = launch(tmp_path, script, "-n", "3", *QUICK, "--timeout", "5", "--log-dir", str(tmp_path / "logs"))
    assert shown.code == 1
    story = shown.err.partition("ember-ml launch: failed")[2]
    assert "rank 2 ended with exit code 1" in story.splitlines()[0]
    assert "ZeroDivisionError" in story
    assert "    ValueError: the reason" in story
    assert "then rank 0 was ended by the launcher" in story
    log = (tmp_path / "logs" / "rank-2.log").read_text()
    assert "start 1, 3 ranks on mlx" in log
    assert "ValueError: the reason" in log


def test_the_exit_code_is_that_of_the_first_failure(tmp_path: Path) -> None:
    script = """
import os, sys, time
if os.environ["EMBER_ML_RANK"] == "1":
    sys.exit(77)
time.sleep(0.3)
sys.exit(9)
"""
    assert launch(tmp_path, script, "-n", "2", *QUICK, "--timeout", "5").code == 77


def test_json_tells_every_event(tmp_path: Path) -> None:
    script = "import os, sys\nprint('ä', 1)\nprint('bad', file=sys.stderr)\nsys.exit(int(os.environ['EMBER_ML_RANK']))"
    shown = launch(tmp_path, script, "-n", "2", *QUICK, "--json")
    events = shown.events
    assert [events[0]["event"], events[-1]["event"]] == ["start", "end"]
    assert events[0]["ranks"] == [{"rank": 0, "host": ""}, {"rank": 1, "host": ""}]
    lines = [(event["rank"], event["stream"], event["text"]) for event in events if event["event"] == "line"]
    assert sorted(lines) == [(0, "err", "bad"), (0, "out", "ä 1"), (1, "err", "bad"), (1, "out", "ä 1")]
    failure = next(event for event in events if event["event"] == "failure")
    assert (failure["rank"], failure["code"], failure["traceback"]) == (1, 1, ["bad"])
    assert (events[-1]["code"], events[-1]["starts"]) == (1, 1)


def test_restarts_start_all_ranks_again(tmp_path: Path) -> None:
    script = """
import os, sys
start = int(os.environ["EMBER_ML_RESTART"])
print("start", start)
sys.exit(0 if start == 2 else 5)
"""
    options = ("-n", "2", *QUICK, "--timeout", "5", "--log-dir", str(tmp_path / "logs"))
    shown = launch(tmp_path, script, *options, "--restarts", "2")
    assert shown.code == 0
    assert shown.out.count("start 2") == 2
    assert shown.err.count("starting 2 ranks again") == 2
    log = (tmp_path / "logs" / "rank-0.log").read_text()
    assert [number for number in (1, 2, 3) if f"start {number}, 2 ranks" in log] == [1, 2, 3]
    assert launch(tmp_path, script, *options, "--restarts", "1").code == 5


def test_a_rank_that_stands_still_ends_the_job_within_the_limit(tmp_path: Path) -> None:
    script = """
import os, time
from ember_ml.distributed import heartbeat
heartbeat.start()
for step in range(3):
    with heartbeat.waiting("step"):
        time.sleep(0.1)
if os.environ["EMBER_ML_RANK"] == "1":
    time.sleep(100)
with heartbeat.waiting("the last step"):
    time.sleep(100)
"""
    shown = launch(tmp_path, script, "-n", "2", *QUICK, "--timeout", "10", "--json")
    failure = next(event for event in shown.events if event["event"] == "failure")
    assert shown.code == failure["code"] == 124
    assert failure["rank"] == 1
    assert "rank 1 has not moved for" in failure["why"]
    assert "rank 0 waited for it in the last step" in failure["why"]
    ended = [event["text"] for event in shown.events if event["event"] == "line" and event["rank"] == 0]
    assert any("PeerLost: this rank was still in the last step: rank 1 has not moved" in line for line in ended)


def test_a_stopped_rank_is_named_though_it_gives_no_signs_of_life(tmp_path: Path) -> None:
    script = """
import os, signal, time
if os.environ["EMBER_ML_RANK"] == "0":
    os.kill(os.getpid(), signal.SIGSTOP)
time.sleep(100)
"""
    shown = launch(tmp_path, script, "-n", "2", *QUICK, "--timeout", "3")
    assert shown.code == 124
    assert "rank 0 has been stopped for" in shown.err
    assert shown.seconds < 30


def test_a_rank_that_raises_but_does_not_end_is_named(tmp_path: Path) -> None:
    script = """
import os, sys, threading, time
from ember_ml.distributed import heartbeat
heartbeat.start()
if os.environ["EMBER_ML_RANK"] == "1":
    threading.Thread(target=time.sleep, args=(100,)).start()  # the interpreter waits for it
    raise ValueError("a mistake")
time.sleep(100)
"""
    shown = launch(tmp_path, script, "-n", "2", *QUICK, "--timeout", "20")
    assert shown.code == 1
    assert "rank 1 raised ValueError: a mistake" in shown.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_stops_all_ranks_and_what_they_started(number: signal.Signals, tmp_path: Path) -> None:
    script = "import subprocess\nother = subprocess.Popen(['sleep', '100'])\n" + PIDS + "print(other.pid)\nother.wait()"
    with Launched(tmp_path, script, "-n", "2", *QUICK) as launched:
        pids = [int(line.split()[-1]) for line in launched.lines(4)]
        launched.process.send_signal(number)
        shown = launched.finish()
    assert shown.code == 128 + number
    assert f"interrupted by {number.name}" in shown.err
    assert all_end(pids)


def test_ranks_that_ignore_ctrl_c_are_killed_by_the_second_one(tmp_path: Path) -> None:
    ignoring = (
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    )
    with Launched(tmp_path, ignoring + PIDS + "time.sleep(100)", "-n", "2", *QUICK) as launched:
        pids = [int(line.split()[-1]) for line in launched.lines(2)]
        launched.process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            launched.process.wait(1.0)
        launched.process.send_signal(signal.SIGINT)
        assert launched.finish().code == 130
    assert all_end(pids)


def test_ranks_end_with_a_launcher_that_is_killed(tmp_path: Path) -> None:
    with Launched(tmp_path, PIDS + "time.sleep(100)", "-n", "2", *QUICK) as launched:
        pids = [int(line.split()[-1]) for line in launched.lines(2)]
        launched.process.kill()
        assert all_end(pids)


def test_an_agent_that_is_killed_leaves_nothing_behind(tmp_path: Path) -> None:
    script = (
        "import subprocess\nother = subprocess.Popen(['sleep', '100'])\n"
        + PIDS
        + "print(other.pid, os.getppid())\nother.wait()"
    )
    with Launched(tmp_path, script, "-n", "2", *QUICK) as launched:
        numbers = [[int(word) for word in line.split()[1:]] for line in launched.lines(4)]
        agent = next(pair[1] for pair in numbers if len(pair) == 2)
        os.kill(agent, signal.SIGKILL)
        assert all_end([pair[0] for pair in numbers])
        assert launched.finish().code == 1


def test_restarts_are_not_spent_on_a_checkpoint_that_cannot_be_used(tmp_path: Path) -> None:
    script = "from ember_ml.errors import CheckpointError\nprint('on')\nraise CheckpointError('state.json is damaged')"
    shown = launch(tmp_path, script, "-n", "1", *QUICK, "--restarts", "5")
    assert shown.code == 1
    assert shown.out.count("[0] on") == 2
    assert "two starts could not use the checkpoint" in shown.err


def test_a_launcher_that_is_stopped_for_long_goes_on(tmp_path: Path) -> None:
    script = """
import time
from ember_ml.distributed import heartbeat
heartbeat.start()
print("ready")
for step in range(60):
    with heartbeat.waiting("step"):
        time.sleep(0.1)
    print("x" * 1000)
"""
    with Launched(tmp_path, script, "-n", "2", *QUICK, "--timeout", "4") as launched:
        launched.lines(2)
        launched.process.send_signal(signal.SIGSTOP)
        time.sleep(4.5)
        launched.process.send_signal(signal.SIGCONT)
        shown = launched.finish()
    assert shown.code == 0, shown.err


def test_asking_for_four_ranks_and_getting_another_number_is_an_error(tmp_path: Path) -> None:
    script = "from ember_ml import distributed\ndistributed.initialize(4)"
    shown = launch(tmp_path, script, "-n", "2", *QUICK, "--timeout", "10")
    assert shown.code == 1
    assert "asks for 4 processes and runs on 2" in shown.err
    alone = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert alone.returncode == 1
    assert "asks for 4 processes and runs on 1" in alone.stderr


def test_ranks_that_each_run_alone_are_noted(tmp_path: Path) -> None:
    shown = launch(tmp_path, "print('alone')", "-n", "2", *QUICK)
    assert shown.code == 0
    assert "each has run by itself" in shown.err


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["-n", "0"], "-n"),
        (["-n", "2", "--timeout", "0"], "timeout"),
        (["-n", "2", "--backend", "tensorflow"], "tensorflow"),
        (["--hosts", "absent.txt"], "absent.txt"),
    ],
)
def test_wrong_input_is_one_clear_error(arguments: list[str], reason: str, tmp_path: Path) -> None:
    shown = launch(tmp_path, "", *arguments)
    assert shown.code == 2
    assert reason in shown.err
    assert "Traceback" not in shown.err


def test_a_script_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match=r"there is no script 'absent\.py'"):
        run("absent.py", [], "torch", 2)


def test_numpy_without_an_engine_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting.shutil, "which", lambda *_, **__: None)
    monkeypatch.setattr(starting, "is_installed", lambda name: name != "torch")
    with pytest.raises(LaunchError, match=r"pip install 'ember-ml\[mpi\]'"):
        starting.mpi_command([Host(LOCAL, range(2))])
    monkeypatch.setattr(starting, "is_installed", lambda _: True)
    assert starting.mpi_command([Host(LOCAL, range(2))]) is None


@pytest.mark.parametrize(
    "text", ["-oProxyCommand=x", "a 4", "a slots=0", "a slots=x", "a slots=2 b", "a\na", "# nothing"]
)
def test_host_files_that_cannot_be_meant(text: str, tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text(text)
    with pytest.raises(LaunchError):
        read_hosts(path)


def test_more_ranks_than_the_hosts_take_is_an_error() -> None:
    with pytest.raises(LaunchError, match="5 ranks were asked for, and the hosts take 4"):
        places([("a", 2), ("b", 2)], 5)
