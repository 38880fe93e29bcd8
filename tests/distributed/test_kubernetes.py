"""The manifests in examples/cluster: Kubernetes knows their objects, and what the pods run computes together.

The schemas of the core objects are those of the package kubernetes-validate; JobSet and the training operator have
models in Kubeflow's packages kubeflow-trainer-api and kubeflow-training, which are made of their schemas.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ember_ml import ops
from ember_ml.backend.processes import rendezvous
from ember_ml.training import checkpoints

yaml = pytest.importorskip("yaml")

EXAMPLE = Path(__file__).parents[2] / "examples" / "cluster"
CUSTOM = ("JobSet", "PyTorchJob")
RANKS, EPOCHS = 2, 60  # in each pod, here, and of 8 steps


def read(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((EXAMPLE / name).read_text()))


def pods_of(manifest: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    """The templates of the pods, and how many pods there are of each."""
    spec = manifest["spec"]
    if manifest["kind"] == "JobSet":
        jobs = [entry["template"]["spec"] for entry in spec["replicatedJobs"]]
        return [(job["completions"], job["template"]) for job in jobs]
    return [(entry["replicas"], entry["template"]) for entry in spec["pytorchReplicaSpecs"].values()]


def core_objects(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """What there is of core objects in a manifest, each as an object of its own."""
    if manifest["kind"] not in CUSTOM:
        return [manifest]
    jobs = manifest["spec"].get("replicatedJobs", [])
    named = {"metadata": {"name": "x"}}
    return [
        *({"apiVersion": "batch/v1", "kind": "Job", **named, **entry["template"]} for entry in jobs),
        *({"apiVersion": "v1", "kind": "Pod", **named, **template} for _, template in pods_of(manifest)),
    ]


MANIFESTS = [
    pytest.param(manifest, id=manifest["kind"])
    for name in ("jobset.yaml", "pytorchjob.yaml")
    for manifest in read(name)
]


def understood(manifest: dict[str, Any]) -> Any:
    """What the model of a custom object understands of a manifest; wrong types and missing fields raise."""
    if manifest["kind"] == "JobSet":
        models = pytest.importorskip("kubeflow_trainer_api.models", reason="kubeflow-trainer-api is not installed")
        return models.JobsetV1alpha2JobSet.from_dict(manifest).to_dict()
    clients = pytest.importorskip("kubeflow.training.api_client", reason="kubeflow-training is not installed")
    client = clients.ApiClient()
    answer = SimpleNamespace(data=json.dumps(manifest))
    return client.sanitize_for_serialization(client.deserialize(answer, "KubeflowOrgV1PyTorchJob"))


def lost(given: Any, found: Any, place: str = "") -> list[str]:
    """The fields that were given and that the model does not have, or has changed."""
    if isinstance(given, dict) and isinstance(found, dict):
        return [path for name, value in given.items() for path in lost(value, found.get(name), f"{place}.{name}")]
    if isinstance(given, list) and isinstance(found, list) and len(given) == len(found):
        pairs = enumerate(zip(given, found, strict=True))
        return [path for number, pair in pairs for path in lost(*pair, f"{place}[{number}]")]
    return [] if given == found or str(given) == str(found) else [place]


@pytest.mark.parametrize("manifest", [entry for entry in MANIFESTS if entry.id in CUSTOM])
def test_a_custom_object_has_the_fields_of_its_schema(manifest: dict[str, Any]) -> None:
    assert lost(manifest, understood(manifest)) == []
    wrong = {**manifest, "spec": {**manifest["spec"], "replicas": 2}}
    assert lost(wrong, understood(wrong)) == [".spec.replicas"]


@pytest.mark.parametrize("manifest", MANIFESTS)
def test_core_objects_have_the_schema_of_kubernetes(manifest: dict[str, Any]) -> None:
    validator = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed")
    for entry in core_objects(manifest):
        validator.validate(entry, "1.30", strict=True)
        with pytest.raises(validator.ValidationError):
            validator.validate({**entry, "spec": {**entry["spec"], "containr": []}}, "1.30", strict=True)


@pytest.mark.parametrize("manifest", [entry for entry in MANIFESTS if entry.id in CUSTOM])
def test_the_pods_agree_about_each_other(manifest: dict[str, Any]) -> None:
    claims = {entry["metadata"]["name"] for entry in read("jobset.yaml") if entry["kind"] == "PersistentVolumeClaim"}
    for _, template in pods_of(manifest):
        (container,) = template["spec"]["containers"]
        program, script, folder = container["command"]
        assert (program, script) == ("torchrun", "train.py")
        assert (EXAMPLE / script).is_file()
        assert folder in [mount["mountPath"] for mount in container["volumeMounts"]]
        (volume,) = template["spec"]["volumes"]
        assert volume["persistentVolumeClaim"]["claimName"] in claims
    variables = {entry["name"]: entry.get("value") for entry in container.get("env", [])}
    if manifest["kind"] == "JobSet":
        (job,) = manifest["spec"]["replicatedJobs"]
        name = manifest["metadata"]["name"]
        assert variables["PET_MASTER_ADDR"] == f"{name}-{job['name']}-0-0.{name}"
        assert variables["PET_NNODES"] == str(job["template"]["spec"]["completions"])
    else:
        assert container["name"] == "pytorch"
        assert not variables  # the operator gives them
    ranks = variables.get("PET_NPROC_PER_NODE") or manifest["spec"]["nprocPerNode"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == int(ranks)


class Pods:
    """Two pods, as processes of this machine, with the variables that JobSet or the operator gives them."""

    def __init__(self, backend: str, folder: Path, number: int) -> None:
        torchrun = shutil.which("torchrun", path=str(Path(sys.executable).parent))
        if torchrun is None:
            pytest.skip("torchrun is not installed")
        folder.mkdir(exist_ok=True)
        port = rendezvous._free_port()
        self.processes: list[subprocess.Popen[bytes]] = []
        self.logs = [folder / f"start-{number}-pod-{pod}.log" for pod in range(2)]
        for pod, log in enumerate(self.logs):
            told = {"NNODES": "2", "NPROC_PER_NODE": str(RANKS), "NODE_RANK": str(pod), "MASTER_PORT": str(port)}
            environment = {
                **os.environ,
                **{f"PET_{name}": value for name, value in {**told, "MASTER_ADDR": "127.0.0.1"}.items()},
                # the operator gives these too, of pods rather than ranks; torchrun replaces them
                "RANK": str(pod), "WORLD_SIZE": "4", "KUBERNETES_SERVICE_HOST": "10.0.0.1",
                "EMBER_ML_BACKEND": backend,
                "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
            }  # fmt: skip
            command = [torchrun, "train.py", str(folder / "kept"), "--epochs", str(EPOCHS)]
            with log.open("w") as file:
                self.processes.append(
                    subprocess.Popen(command, cwd=EXAMPLE, env=environment, stdout=file, stderr=subprocess.STDOUT)
                )

    def printed(self) -> str:
        return "".join(log.read_text() for log in self.logs)

    def wait_for(self, words: str) -> None:
        until = time.monotonic() + 200.0
        while words not in self.printed():
            assert time.monotonic() < until, self.printed()
            time.sleep(0.02)

    def codes(self) -> list[int]:
        return [process.wait(200) for process in self.processes]


def weights(folder: Path) -> dict[str, list[float]]:
    tensors, state = checkpoints.read(folder / "kept")
    assert state["steps"] == 8 * EPOCHS
    return {name: ops.to_numpy(x).ravel().tolist() for name, x in tensors["model"].items()}


@pytest.mark.long
def test_a_pod_that_is_evicted_takes_the_others_along_and_no_step_is_lost(backend: str, tmp_path: Path) -> None:
    whole, disturbed = tmp_path / "whole", tmp_path / "disturbed"
    pods = Pods(backend, whole, 0)
    assert pods.codes() == [0, 0], pods.printed()
    assert "4 processes begin at step 0" in pods.printed()
    pods = Pods(backend, disturbed, 0)
    pods.wait_for("epoch 10:")
    pods.processes[1].send_signal(signal.SIGTERM)
    assert all(pods.codes()), pods.printed()  # so that JobSet, or the operator, starts them again
    last = max(int(epoch) for epoch in re.findall(r"epoch (\d+):", pods.printed()))
    pods = Pods(backend, disturbed, 1)
    assert pods.codes() == [0, 0], pods.printed()
    (step,) = re.findall(r"4 processes begin at step (\d+)", pods.printed())
    assert 8 * last <= int(step) < 8 * EPOCHS
    assert weights(disturbed) == weights(whole)
