"""Train with two ranks under random faults, and compare the weights with those of a run that nothing has disturbed.

``python -m tests.fuzz.faults BACKEND N SEED`` starts short jobs until N faults have come over them: processes that are
killed or stopped, connections that are closed, a network that is down, a full disk, damaged checkpoints, a launcher
that dies or is asked to end. A job must end with the same weights, bit for bit, or refuse a checkpoint in clear words;
it never goes on from an older checkpoint than the last that is whole; and no process may outlive it. It prints one line
for each job, and exits with 1 if one was not as it must be.

A job has a network and a small disk of its own, for which Linux asks for the rights of root.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.distributed.launching import COMMAND, all_end
from tests.distributed.namespaces import Namespace

__all__ = ["Outcome", "run_job", "train_undisturbed"]

STEPS, EVERY, LIMIT = 40, 3, 15.0
MOST_FAULTS = 5  # of a job
PATIENCE = 900.0  # seconds for a job
DISK_BYTES = 400_000
# how a rank closes its connections when it gets SIGUSR1: as seen from outside, the network has cut them
TRAINING = f"""
import os
print("pid", os.getpid(), os.getppid())
import hashlib, json, signal, socket, sys, time
from ember_ml import distributed, nn, ops
from ember_ml.distributed.strategy import DataParallelStrategy
from ember_ml.training import Trainer, callbacks

def cut(*_):
    for name in os.listdir("/proc/self/fd"):
        try:
            with socket.socket(fileno=os.dup(int(name))) as found:
                if found.family in (socket.AF_INET, socket.AF_INET6) and found.getpeername():
                    found.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

signal.signal(signal.SIGUSR1, cut)

class Told(callbacks.Checkpoint):
    def begin(self, trainer):
        super().begin(trainer)
        print("from", trainer.steps)
    def after_step(self, trainer):
        super().after_step(trainer)
        print("step", trainer.steps)
        time.sleep(0.05)

ops.seed(0)
model = nn.Sequential(nn.Linear(3, 8), ops.tanh, nn.Dropout(0.2), nn.Linear(8, 1))
x = ops.sin(ops.reshape(ops.arange(120, dtype="float32"), (40, 3)))
y = ops.sum(x, axis=1, keepdims=True)
kept = Told(sys.argv[1], every_steps={EVERY}, resume=True, wait=sys.argv[2] == "waits")
trainer = Trainer(model, "adam", strategy=DataParallelStrategy(2), seed=3, callbacks=[kept], progress=False)
trainer.fit(x, y, epochs={STEPS // 5}, batch_size=8)
weights = {{name: ops.to_numpy(value).tolist() for name, value in model.state_dict().items()}}
print("weights", hashlib.sha256(json.dumps(weights).encode()).hexdigest())
"""


class Machine(Namespace):
    """A network and a small disk for one job."""

    def __init__(self, disk: Path) -> None:
        disk.mkdir()
        super().__init__(f"mount -t tmpfs -o size={DISK_BYTES} none {disk}")
        self.inside, self.disk = disk, self.look(disk)

    def set_network(self, state: str) -> None:
        subprocess.run(self.enter("ip", "link", "set", "lo", state), check=True)

    def fill(self) -> None:
        with open(self.disk / "filler", "wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"\0" * 4096)
            except OSError:
                pass

    def clear(self) -> None:
        (self.disk / "filler").unlink(missing_ok=True)


class Outcome:
    """What became of a job: its faults, and what is wrong, if anything."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.ending = "weights equal"
        self.wrong = ""


class Job:
    """One job: reads what its launcher tells, and brings one fault after the other over it."""

    def __init__(self, backend: str, folder: Path, plan: list[str], chances: random.Random) -> None:
        self.machine = Machine(folder / "disk")
        self.story = folder / "story.txt"  # all that the launcher tells, to see what went wrong
        self.script = folder / "script.py"
        self.script.write_text(TRAINING)
        self.options = ["-n", "2", "--backend", backend, "--timeout", str(LIMIT), "--restarts", "20", "--json"]
        self.plan, self.chances, self.outcome = plan, chances, Outcome()
        self.launcher: subprocess.Popen[str] | None = None
        self.pids: dict[int, tuple[int, int]] = {}  # of each rank and its agent
        self.all_pids: list[int] = []
        self.weights: dict[int, str] = {}
        self.waits = chances.random() < 0.5  # for each checkpoint, or until the next one
        self.begun = 0  # the step of the checkpoint that may still be written
        self.saved = [0]  # the steps of the checkpoints that are written
        self.floor = 0  # the step from which the next start has to go on at least
        self.least = 0  # that of this start: one rank's first step may be told before from where another goes on
        self.due: tuple[str, int] | None = None  # the next fault, and after which step
        self.under_way: list[threading.Thread] = []
        self.is_relaunched = False
        self.is_hopeless = False  # all checkpoints are damaged
        self.failures: list[str] = []

    def run(self) -> Outcome:
        watchdog = threading.Timer(PATIENCE, self._give_up)
        watchdog.start()
        try:
            code = self._launch()
            while code != 0 and self.is_relaunched and not self.outcome.wrong:
                code = self._launch()
            self._judge(code)
        finally:
            watchdog.cancel()
            for thread in self.under_way:
                thread.join()
            self.machine.close()
        return self.outcome

    def _give_up(self) -> None:
        self.outcome.wrong = f"it has not ended after {PATIENCE:.0f} s"
        if self.launcher is not None:
            self.launcher.kill()

    def _launch(self) -> int:
        self.is_relaunched = False
        how = "waits" if self.waits else "goes on"
        command = [*COMMAND, "launch", *self.options, str(self.script), str(self.machine.inside / "kept"), how]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
        with (
            open(self.story, "a") as story,
            subprocess.Popen(
                self.machine.enter(*command),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env=environment,
            ) as self.launcher,
        ):
            assert self.launcher.stdout is not None
            for line in self.launcher.stdout:
                story.write(line)
                if line.startswith("{"):
                    self._take(json.loads(line))
        if not all_end([pid for pid in self.all_pids if pid > 1]):
            self.outcome.wrong = "a process has outlived its launcher"
        return self.launcher.returncode

    def _take(self, event: dict[str, Any]) -> None:
        if event["event"] == "start":
            self.pids, self.least = {}, self.floor
        elif event["event"] == "failure":
            self.failures.append(str(event.get("why", event)))
            self.machine.clear()
        elif event["event"] == "line":
            self._take_line(event["rank"], event["text"])

    def _take_line(self, rank: int, text: str) -> None:
        word, _, rest = text.partition(" ")
        if word == "pid":
            own, agent = map(int, rest.split())
            self.pids[rank] = own, agent
            self.all_pids += [own, agent]
        elif word == "from":
            if int(rest) < min(self.least, self.floor):  # damage lowers the floor
                self.outcome.wrong = f"rank {rank} goes on from step {rest}, and {self.least} was saved"
            if rank == 0:
                self.begun = int(rest)
                self._arm(int(rest))
        elif word == "step" and rank == 0:
            step = int(rest)
            if step % EVERY == 0:
                written, self.begun = step if self.waits else self.begun, step
                self.saved = [*(former for former in self.saved if former < written), written]
                self.floor = written
            if self.due is not None and step >= self.due[1]:
                (kind, _), self.due = self.due, None
                self._bring(kind)
        elif word == "weights":
            self.weights[rank] = rest

    def _arm(self, step: int) -> None:
        """Choose after which step the next fault comes."""
        if self.due is None and self.plan and step < STEPS - 2:
            self.due = self.plan.pop(0), self.chances.randrange(step + 1, min(step + 10, STEPS - 1))

    def _bring(self, kind: str) -> None:
        self.outcome.faults.append(kind)
        with open(self.story, "a") as story:
            story.write(f"fault: {kind}\n")
        thread = threading.Timer(self.chances.uniform(0.0, 0.12), self._disturb, [kind])
        self.under_way.append(thread)
        thread.start()

    def _disturb(self, kind: str) -> None:
        FAULTS[kind](self)
        self._arm(self.saved[-1])  # the next one comes later, in this start or in another

    def signal_rank(self, number: int) -> int:
        """Send a signal to one of the ranks; return the process, which may be gone."""
        pid = self.chances.choice(list(self.pids.values()))[0]
        self._signal(pid, number)
        return pid

    def _signal(self, pid: int, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)

    def kill(self) -> None:
        self.signal_rank(signal.SIGKILL)

    def stop(self) -> None:
        self.signal_rank(signal.SIGSTOP)

    def pause(self) -> None:
        pid = self.signal_rank(signal.SIGSTOP)
        time.sleep(self.chances.uniform(0.1, 2.0))
        self._signal(pid, signal.SIGCONT)

    def kill_agent(self) -> None:
        agents = [agent for _, agent in self.pids.values() if agent > 1]
        self._signal(self.chances.choice(agents), signal.SIGKILL)

    def cut_connections(self) -> None:
        self.signal_rank(signal.SIGUSR1)

    def cut_network(self) -> None:
        """For a moment, which changes nothing, or for longer than ranks may stand still."""
        self.machine.set_network("down")
        time.sleep(self.chances.choice([self.chances.uniform(0.2, 2.0), LIMIT]))
        self.machine.set_network("up")

    def fill_disk(self) -> None:
        self.machine.fill()  # until the launcher tells of a failure

    def damage(self) -> None:
        """Damage the newest checkpoint, and let a rank die, so that it is needed."""
        states = self._stop_to_damage()
        self.floor = self.saved[-2] if len(self.saved) > 1 else 0
        self.is_hopeless = len(states) < 2
        self._damage(self.machine.disk / "kept" / "state.json")
        self._end_stopped()

    def damage_all(self) -> None:
        """Damage every checkpoint: there is nothing to go on from."""
        states = self._stop_to_damage()
        self.plan, self.floor, self.is_hopeless = [], 0, True
        for state in states:
            self._damage(state, is_deleted=False)
        self._end_stopped()

    def _stop_to_damage(self) -> list[Path]:
        """Stop the ranks, so that nothing is written meanwhile; return the checkpoints that are there."""
        for pid, _ in self.pids.values():
            self._signal(pid, signal.SIGSTOP)
        time.sleep(0.5)  # until all that they have told is read
        return list((self.machine.disk / "kept").glob("state*.json"))

    def _end_stopped(self) -> None:
        first, *others = (pid for pid, _ in self.pids.values())
        self._signal(first, signal.SIGKILL)
        for pid in others:
            self._signal(pid, signal.SIGCONT)

    def _damage(self, state: Path, is_deleted: bool = True) -> None:
        try:
            names = [entry["name"] for entry in json.loads(state.read_text())["files"].values()]
            path = state.with_name(self.chances.choice([state.name, *names]))
            content = bytearray(path.read_bytes())
            how = self.chances.choice(["flip", "cut", "delete"] if is_deleted else ["flip", "cut"])
            if how == "delete":
                path.unlink()
                return
            place = self.chances.randrange(len(content))
            if how == "flip":
                content[place] ^= 1 << self.chances.randrange(8)
            path.write_bytes(content if how == "flip" else content[:place])
        except FileNotFoundError:  # it was replaced a moment ago
            pass

    def kill_launcher(self) -> None:
        self._signal_launcher(signal.SIGKILL)

    def ask_to_end(self) -> None:
        self._signal_launcher(signal.SIGTERM)

    def _signal_launcher(self, number: int) -> None:
        assert self.launcher is not None
        self.is_relaunched = True
        self.launcher.send_signal(number)

    def _judge(self, code: int) -> None:
        if self.outcome.wrong:
            return
        if code == 0 and sorted(self.weights) == [0, 1]:
            self.outcome.ending = "weights equal"
        elif "damaged" in "".join(self.failures[-1:]) or "CheckpointError" in "".join(self.failures[-1:]):
            self.outcome.ending = "refused"
            if not self.is_hopeless:
                self.outcome.wrong = f"a whole checkpoint was refused: {self.failures[-1]}"
        else:
            self.outcome.wrong = f"it has ended with code {code}: {self.failures[-1:]}"


FAULTS: dict[str, Callable[[Job], None]] = {
    "kill": Job.kill,
    "stop": Job.stop,
    "pause": Job.pause,
    "agent": Job.kill_agent,
    "connections": Job.cut_connections,
    "network": Job.cut_network,
    "disk": Job.fill_disk,
    "checkpoint": Job.damage,
    "all checkpoints": Job.damage_all,
    "launcher": Job.kill_launcher,
    "asked to end": Job.ask_to_end,
}
# in one job out of several; a job without a checkpoint ends there
WEIGHTS = {"kill": 4, "checkpoint": 3, "disk": 3, "connections": 3, "network": 2, "stop": 2}


def train_undisturbed(backend: str, folder: Path) -> str:
    """Return the digest of the weights of a run without faults; ``folder`` is for its files."""
    job = Job(backend, folder, [], random.Random(0))
    outcome = job.run()
    if outcome.wrong or len(set(job.weights.values())) != 1:
        raise AssertionError(f"a job without faults has failed: {outcome.wrong} {job.weights}")
    return job.weights[0]


def run_job(backend: str, folder: Path, count: int, expected: str, chances: random.Random) -> Outcome:
    """Run a job with so many faults at most; ``expected`` is the digest of its weights."""
    kinds = list(FAULTS)
    plan = chances.choices(kinds, [WEIGHTS.get(kind, 1) for kind in kinds], k=count)
    job = Job(backend, folder, plan, chances)
    outcome = job.run()
    if not outcome.wrong and outcome.ending == "weights equal" and set(job.weights.values()) != {expected}:
        outcome.wrong = f"the weights {job.weights} are not those of an undisturbed run, {expected}"
    if outcome.wrong:
        outcome.wrong += f"; failures: {job.failures}; see {job.story}"
    return outcome


def main() -> int:
    backend, wanted, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    chances = random.Random(f"{backend} {seed}")
    told: Counter[str] = Counter()
    endings: Counter[str] = Counter()
    wrong = 0
    base = Path(tempfile.mkdtemp(prefix="faults-"))
    (base / "undisturbed").mkdir()
    expected = train_undisturbed(backend, base / "undisturbed")
    number = 0
    while sum(told.values()) < wanted:
        number += 1
        folder = base / str(number)
        folder.mkdir()
        began = time.monotonic()
        count = min(chances.randint(1, MOST_FAULTS), wanted - sum(told.values()))
        outcome = run_job(backend, folder, count, expected, random.Random(f"{backend} {seed} {number}"))
        told.update(outcome.faults)
        endings[outcome.ending if not outcome.wrong else "wrong"] += 1
        wrong += bool(outcome.wrong)
        said = f"job {number}: {', '.join(outcome.faults) or 'no fault'}: {outcome.wrong or outcome.ending}"
        print(f"{said} ({time.monotonic() - began:.0f} s)", flush=True)
    print(f"{backend}: {sum(told.values())} faults in {number} jobs {dict(told)}; {dict(endings)}", flush=True)
    if not wrong:
        shutil.rmtree(base)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
