"""Models of timm: small ones with weights from a seed, and what timm computes with them.

timm needs torchvision, so the tests read its results from ``tests/data/timm_models.json``, which this writes where timm
is installed: ``python -m tests.reference.timm_models``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from tests.reference.pretrained import quietly

__all__ = ["CASES", "FULL", "compute", "draw_images", "read_results", "write", "write_whole"]

_RESULTS = Path(__file__).parents[1] / "data" / "timm_models.json"
_RESNET: dict[str, Any] = {"layers": [2, 1, 1, 1], "channels": [4, 4, 6, 6]}
_CONVNEXT: dict[str, Any] = {"depths": [1, 2, 1, 1], "dims": [4, 4, 6, 6]}


def _case(architecture: str, classes: int = 5, **arguments: Any) -> dict[str, Any]:
    return {"architecture": architecture, "num_classes": classes, "model_args": arguments}


CASES: dict[str, dict[str, Any]] = {
    "resnet18": _case("resnet18", layers=[1, 2, 1, 1], channels=[4, 4, 6, 6]),
    "resnet34": _case("resnet34", **_RESNET),
    "resnet26": _case("resnet26", in_chans=1, **_RESNET),
    "resnet50": _case("resnet50", layers=[1, 1, 1, 1], channels=[4, 4, 8, 8]),
    "resnet101": _case("resnet101", classes=0, **_RESNET),
    "convnext_tiny": _case("convnext_tiny", **_CONVNEXT),
    "convnext_base": _case("convnext_base", classes=0, depths=[1, 1, 1, 1], dims=[8, 8, 8, 12]),
    "convnext_atto": _case("convnext_atto", in_chans=1, **_CONVNEXT),
    "convnextv2_tiny": _case("convnextv2_tiny", **_CONVNEXT),
    "convnextv2_atto": _case("convnextv2_atto", **_CONVNEXT),
}
FULL = (
    *("resnet18", "resnet26", "resnet34", "resnet50", "resnet101"),
    *("convnext_atto", "convnext_femto", "convnext_pico", "convnext_nano", "convnext_tiny"),
    *("convnextv2_atto", "convnextv2_femto", "convnextv2_pico", "convnextv2_nano", "convnextv2_tiny"),
)
"""Models of their own sizes, for tests where timm is installed."""


def draw_images(channels: int) -> np.ndarray:
    """Return images, (batch, height, width, channels)."""
    return np.random.default_rng(0).normal(size=(2, 40, 48, channels)).astype(np.float32)


def draw(name: str, shape: list[int], number: int) -> np.ndarray:
    """Return the weight of a name, the same each time."""
    stream = np.random.default_rng(number)
    if name.endswith("num_batches_tracked"):
        return np.array(7)
    if name.endswith("running_var"):
        return stream.uniform(0.5, 2.0, shape).astype(np.float32)
    size = max(int(np.prod(shape[1:])), 4)
    return (stream.normal(size=shape) * size**-0.5 + (len(shape) == 1)).astype(np.float32)


def write(name: str, folder: Path) -> np.ndarray:
    """Write a model as timm does, with the names and shapes that timm has; return what timm computes with it."""
    from safetensors.numpy import save_file

    found = read_results()[name]
    tensors = {key: draw(key, shape, i) for i, (key, shape) in enumerate(found["shapes"].items())}
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    (folder / "config.json").write_text(json.dumps({**CASES[name], "pretrained_cfg": {"input_size": [3, 224, 224]}}))
    return np.array(found["result"], np.float32)


def read_results() -> dict[str, Any]:
    """Return what timm has and computes, by the name of a case."""
    return json.loads(_RESULTS.read_text())


def write_whole(name: str, folder: Path) -> None:
    """Let timm write a model of its own size with random weights into a folder."""
    import timm
    import torch
    from timm.models._hub import save_for_hf

    torch.manual_seed(len(name))
    model = quietly(timm.create_model, name, num_classes=7).eval()
    state = model.state_dict()
    model.load_state_dict({key: torch.tensor(draw(key, list(x.shape), i)) for i, (key, x) in enumerate(state.items())})
    quietly(save_for_hf, model, folder, safe_serialization=True)


def compute(folder: Path, images: np.ndarray) -> np.ndarray:
    """Return what timm computes of (batch, height, width, channels) images with the model in a folder."""
    import timm
    import torch
    from safetensors.torch import load_file

    config = json.loads((folder / "config.json").read_text())
    arguments = {**config.get("model_args", {}), "num_classes": config["num_classes"]}  # which timm 1.0.31 says twice
    model = quietly(timm.create_model, config["architecture"], **arguments).eval()
    model.load_state_dict(load_file(folder / "model.safetensors"))
    with torch.no_grad():
        return model(torch.tensor(images).permute(0, 3, 1, 2)).numpy()


def main() -> None:
    """Write the results of all cases."""
    import tempfile

    import timm

    found: dict[str, Any] = {}
    for name, case in CASES.items():
        model = timm.create_model(case["architecture"], num_classes=case["num_classes"], **case["model_args"])
        shapes = {key: list(x.shape) for key, x in model.state_dict().items()}
        found[name] = {"shapes": shapes, "result": []}
        _RESULTS.write_text(json.dumps(found))
        with tempfile.TemporaryDirectory() as folder:
            write(name, Path(folder))
            result = compute(Path(folder), draw_images(case["model_args"].get("in_chans", 3)))
        found[name]["result"] = [[float(f"{x:.8g}") for x in row] for row in result.tolist()]
    _RESULTS.write_text(json.dumps(found).replace("}, ", "},\n") + "\n")


if __name__ == "__main__":
    main()
