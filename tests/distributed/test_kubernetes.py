"""The manifests in examples/cluster: Kubernetes knows their objects, and what the pods run computes together.

The schemas of the core objects are those of the package kubernetes-validate. Those of JobSet and of Kubeflow's training
operator are written down here, from their documents: the fields that the examples may use.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ember_ml.backend.processes import rendezvous
from ember_ml.training import checkpoints

yaml = pytest.importorskip("yaml")
jsonschema = pytest.importorskip("jsonschema")

EXAMPLE = Path(__file__).parents[2] / "examples" / "cluster"
RANKS = 2  # in each pod, here


def fields(required: str = "", **properties: Any) -> dict[str, Any]:
    """The schema of an object with no other fields than these."""
    return {
        "type": "object",
        "properties": properties,
        "required": required.split(),
        "additionalProperties": False,
    }


NUMBER, TEXT, TRUTH = {"type": "integer", "minimum": 0}, {"type": "string"}, {"type": "boolean"}
NAME = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 63}
META = fields("name", name=NAME, namespace=NAME, labels={"type": "object"}, annotations={"type": "object"})
ANY = {"type": "object"}  # a template of the core objects, which is checked by itself


def schema_of(version: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    """The schema of an object of this kind."""
    kinds = {"apiVersion": {"const": version}, "kind": {"const": kind}}
    return fields("apiVersion kind metadata spec", **kinds, metadata=META, spec=spec)


JOB_SET = schema_of(
    "jobset.x-k8s.io/v1alpha2",
    "JobSet",
    fields(
        "replicatedJobs",
        replicatedJobs={
            "type": "array",
            "minItems": 1,
            "items": fields(
                "name template",
                name=NAME,
                replicas=NUMBER,
                template=fields("spec", metadata=ANY, spec=ANY),
                groupName=TEXT,
                dependsOn={"type": "array"},
            ),
        },
        network=fields(enableDNSHostnames=TRUTH, subdomain=TEXT, publishNotReadyAddresses=TRUTH),
        successPolicy=fields("operator", operator={"enum": ["All", "Any"]}, targetReplicatedJobs={"type": "array"}),
        failurePolicy=fields(
            maxRestarts=NUMBER, restartStrategy={"enum": ["Recreate", "BlockingRecreate"]}, rules={"type": "array"}
        ),
        startupPolicy=fields("startupPolicyOrder", startupPolicyOrder={"enum": ["AnyOrder", "InOrder"]}),
        coordinator=fields("replicatedJob", replicatedJob=TEXT, jobIndex=NUMBER, podIndex=NUMBER),
        suspend=TRUTH,
        managedBy=TEXT,
        ttlSecondsAfterFinished=NUMBER,
    ),
)  # fmt: skip
REPLICAS = fields(
    "template",
    replicas=NUMBER,
    restartPolicy={"enum": ["Always", "OnFailure", "Never", "ExitCode"]},
    template=ANY,
)
PYTORCH_JOB = schema_of(
    "kubeflow.org/v1",
    "PyTorchJob",
    fields(
        "pytorchReplicaSpecs",
        pytorchReplicaSpecs=fields("Master", Master=REPLICAS, Worker=REPLICAS),
        nprocPerNode=TEXT,
        elasticPolicy=ANY,
        runPolicy=fields(
            cleanPodPolicy={"enum": ["Running", "All", "None"]},
            backoffLimit=NUMBER,
            activeDeadlineSeconds=NUMBER,
            ttlSecondsAfterFinished=NUMBER,
            schedulingPolicy=ANY,
            suspend=TRUTH,
            managedBy=TEXT,
        ),
    ),
)
SCHEMAS = {"JobSet": JOB_SET, "PyTorchJob": PYTORCH_JOB}


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
    if manifest["kind"] not in SCHEMAS:
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


@pytest.mark.parametrize("manifest", [entry for entry in MANIFESTS if entry.id in SCHEMAS])
def test_a_custom_object_has_the_fields_that_are_documented(manifest: dict[str, Any]) -> None:
    jsonschema.validate(manifest, SCHEMAS[manifest["kind"]])
    wrong = {**manifest, "spec": {**manifest["spec"], "replicas": 2}}
    with pytest.raises(jsonschema.ValidationError, match="replicas"):
        jsonschema.validate(wrong, SCHEMAS[manifest["kind"]])


@pytest.mark.parametrize("manifest", MANIFESTS)
def test_core_objects_have_the_schema_of_kubernetes(manifest: dict[str, Any]) -> None:
    validator = pytest.importorskip("kubernetes_validate")
    for entry in core_objects(manifest):
        validator.validate(entry, "1.30", strict=True)
        with pytest.raises(validator.ValidationError):
            validator.validate({**entry, "spec": {**entry["spec"], "containr": []}}, "1.30", strict=True)


@pytest.mark.parametrize("manifest", [entry for entry in MANIFESTS if entry.id in SCHEMAS])
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


@pytest.mark.long
def test_what_the_pods_run_trains_together(backend: str, tmp_path: Path) -> None:
    """Two pods, as processes of this machine, with the variables that JobSet or the operator gives them."""
    torchrun = shutil.which("torchrun", path=str(Path(sys.executable).parent))
    if torchrun is None:
        pytest.skip("torchrun is not installed")
    port = rendezvous._free_port()
    pods = []
    for number in range(2):
        told = {"NNODES": "2", "NPROC_PER_NODE": str(RANKS), "NODE_RANK": str(number), "MASTER_PORT": str(port)}
        environment = {
            **os.environ,
            **{f"PET_{name}": value for name, value in {**told, "MASTER_ADDR": "127.0.0.1"}.items()},
            # the operator gives these too, of pods rather than ranks; torchrun replaces them
            "RANK": str(number), "WORLD_SIZE": "4", "KUBERNETES_SERVICE_HOST": "10.0.0.1",
            "EMBER_ML_BACKEND": backend,
            "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
        }  # fmt: skip
        command = [torchrun, "train.py", str(tmp_path / "kept"), "--epochs", "10"]
        pods.append(
            subprocess.Popen(
                command, cwd=EXAMPLE, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
        )
    printed = [pod.communicate(timeout=300)[0] for pod in pods]
    assert [pod.returncode for pod in pods] == [0, 0], printed
    assert "4 processes begin at step 0" in printed[0]
    assert "ended after 80 steps" in printed[0]
    assert checkpoints.read(tmp_path / "kept")[1]["steps"] == 80
