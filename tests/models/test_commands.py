"""The commands for models: what they print and write, one line for what is wrong, Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ember_ml
from ember_ml import cli, models, ops
from tests.reference import tokenizing
from tests.reference.pretrained import Written

CONFIG = {
    **{"model_type": "llama", "vocab_size": 300, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2},
    **{"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 100_000},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "small"
    models.from_config(CONFIG).save(path)
    tokenizing.write_tokenizer(path)
    return path


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[..., tuple[int, str, str]]]:
    """Run `ember-ml` with arguments in this process; return its code and what it printed."""
    before = ember_ml.get_backend()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["ember-ml", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        code = ended.value.code
        return (code if isinstance(code, int) else 0, *capsys.readouterr())

    yield run
    ember_ml.set_backend(before)


def test_generate_goes_on_with_a_text(folder: Path, backend: str, command: Any) -> None:
    model, tokenizer = models.load(folder), models.tokenizer(folder)
    prompt = tokenizer.encode("the cat")
    wanted = model.generate(prompt, 12)
    code, out, err = command("generate", str(folder), "the cat", "--backend", backend, "--max-tokens", "12")
    assert (code, out) == (0, tokenizer.decode(wanted) + "\n")
    assert "12 tokens after" in err
    assert "tokens/s, stopped at --max-tokens" in err
    choices = ["--temperature", "0.9", "--top-k", "30", "--top-p", "0.9", "--seed", "4"]
    code, out, _ = command("generate", str(folder), "the cat", "--json", "--max-tokens", "12", *choices)
    found = json.loads(out)
    assert found["tokens"] == model.generate(prompt, 12, temperature=0.9, top_k=30, top_p=0.9, seed=4)
    assert found["text"] == tokenizer.decode(found["tokens"])
    assert (found["prompt_tokens"], found["ending"], found["backend"]) == (len(prompt), "length", backend)
    assert 0 < found["first_seconds"] <= found["seconds"]


def test_generate_ends_at_the_token_of_the_end(folder: Path, tmp_path: Path, command: Any) -> None:
    model, tokenizer = models.load(folder), models.tokenizer(folder)
    whole = model.generate(tokenizer.encode("a"), 12)
    model.generation["eos_token_id"] = whole[5]
    model.save(tmp_path / "ending")
    end = whole.index(whole[5])
    _, out, _ = command("generate", str(tmp_path / "ending"), "a", "--json")
    found = json.loads(out)
    assert (found["tokens"], found["ending"]) == (whole[: end + 1], "stop")
    assert found["text"] == tokenizer.decode(whole[:end])


def test_chat_answers_each_line(
    folder: Path, backend: str, command: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "lines").write_text("the hat\n\nthe mat\n")
    model, tokenizer = models.load(folder), models.tokenizer(folder)
    messages: list[dict[str, str]] = []
    for said in ("the hat", "the mat"):
        messages.append({"role": "user", "content": said})
        answer = tokenizer.decode(model.generate(tokenizer.encode_chat(messages), 6))
        messages.append({"role": "assistant", "content": answer})
    with open(tmp_path / "lines") as lines:
        monkeypatch.setattr(sys, "stdin", lines)
        code, out, err = command("chat", str(folder), "--backend", backend, "--max-tokens", "6")
    assert (code, out) == (0, f"{messages[1]['content']}\n{messages[3]['content']}\n\n")
    assert err.count("tokens/s") == 2


def test_convert_writes_another_folder(folder: Path, backend: str, command: Any, tmp_path: Path) -> None:
    target = tmp_path / "half"
    code, out, _ = command("convert", str(folder), str(target), "--dtype", "bfloat16", "--backend", backend)
    assert code == 0
    assert out.startswith(f"{target}: {models.load(folder).num_parameters} parameters, ")
    assert json.loads((target / "config.json").read_text())["dtype"] == "bfloat16"
    whole, half = models.load(folder), models.load(target)
    for name, value in whole.state_dict().items():
        wanted = ops.cast(ops.cast(value, "bfloat16"), "float32")
        assert ops.item(ops.all(ops.equal(ops.cast(half.state_dict()[name], "float32"), wanted))), name
    assert models.tokenizer(target).encode("the cat") == models.tokenizer(folder).encode("the cat")
    code, _, err = command("convert", str(folder), str(target))
    assert (code, "is there already" in err) == (2, True)


def test_weights_of_few_bits_are_written_and_used(folder: Path, backend: str, command: Any, tmp_path: Path) -> None:
    models.from_config({**CONFIG, "hidden_size": 64, "head_dim": 16}).save(tmp_path / "wide")
    tokenizing.write_tokenizer(tmp_path / "wide")
    quantized = models.load(tmp_path / "wide", quantize="int8")
    wanted = quantized.generate(models.tokenizer(folder).encode("the cat"), 6)
    run = ("--backend", backend, "--max-tokens", "6", "--json")
    _, out, _ = command("generate", str(tmp_path / "wide"), "the cat", "--quantize", "int8", *run)
    assert json.loads(out)["tokens"] == wanted
    target = tmp_path / "few"
    code, _, _ = command("convert", str(tmp_path / "wide"), str(target), "--quantize", "int8", "--backend", backend)
    assert code == 0
    assert json.loads((target / "config.json").read_text())["quantization"]["bits"] == 8
    _, out, _ = command("generate", str(target), "the cat", *run)
    assert json.loads(out)["tokens"] == wanted


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["generate", "nothing", "x"], "there is no folder nothing"),
        (["generate", "org/nothing", "x"], "no folder org/nothing, and huggingface_hub finds no model"),
        (["generate", "{folder}", "x", "--backend", "tensorflow"], "no backend 'tensorflow'"),
        (["generate", "{folder}", "x", "--dtype", "float99"], "'float99' is not a dtype"),
        (["generate", "{folder}", "x", "--dtype", "int8"], "floating-point numbers, not int8"),
        (["generate", "{folder}", "x", "--device", "toaster"], "no device 'toaster'"),
        (["generate", "{folder}", "x", "--top-p", "7"], "top_p is above 0"),
        (["generate", "{folder}", "x", "--quantize", "int2"], "quantize is one of int4, int8"),
        (["generate", "{encoder}", "x"], "a bert model, which writes no texts"),
        (["generate", "{damaged}", "x"], "cannot be read"),
        (["chat", "{bare}"], "no tokenizer.json"),
        (["convert", "{damaged}", "out"], "cannot be read"),
        (["serve", "{damaged}"], "cannot be read"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(
    arguments: list[str], message: str, folder: Path, command: Any, tmp_path: Path, written: Callable[[str], Written]
) -> None:
    if arguments[0] == "serve":
        pytest.importorskip("uvicorn")
    for name in ("encoder", "damaged", "bare"):
        models.from_config(CONFIG).save(tmp_path / name)
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    models.from_config({"model_type": "bert", "vocab_size": 300, **sizes}).save(tmp_path / "encoder")
    tokenizing.write_tokenizer(tmp_path / "encoder")
    tokenizing.write_tokenizer(tmp_path / "damaged")
    (tmp_path / "damaged" / "config.json").write_text('{"model_type": ')
    places = {"folder": folder, **{name: tmp_path / name for name in ("encoder", "damaged", "bare")}}
    code, _, err = command(*(part.format(**places) for part in arguments))
    assert code == 2
    assert message in " ".join(err.split())
    assert err.startswith("Error: ")
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_serve_without_its_packages_says_what_to_install(
    folder: Path, command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    code, _, err = command("serve", str(folder))
    assert (code, "pip install 'ember-ml[serve]'" in err) == (2, True)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals between processes")
def test_ctrl_c_ends_the_answer_and_not_the_conversation(folder: Path) -> None:
    command = [sys.executable, "-m", "ember_ml.cli", "chat", str(folder), "--backend", "numpy", "--max-tokens", "90000"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}, **pipes) as program:
        assert program.stdin
        assert program.stdout
        assert program.stderr
        watchdog = threading.Timer(60, program.kill)
        watchdog.start()
        for _ in range(2):
            program.stdin.write("the hat\n")
            program.stdin.flush()
            assert program.stdout.read(1)  # the answer has begun
            time.sleep(0.1)
            program.send_signal(signal.SIGINT)
            assert program.stderr.readline().endswith(", interrupted\n")
        _, err = program.communicate()
        watchdog.cancel()
    assert (program.returncode, err) == (0, "")


def test_the_commands_load_nothing_before_they_run() -> None:
    """`ember-ml --help` lists them, and must stay fast."""
    code = "import sys, ember_ml.cli; print(sorted(name for name in sys.modules if name.startswith('ember_ml.models')))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "['ember_ml.models', 'ember_ml.models.cli', 'ember_ml.models.plan_command']"
