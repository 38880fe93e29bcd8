"""Ways to damage the folder of a model, or to make it harm whoever opens it; each is sure to make it unusable."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["DAMAGES", "ESCAPES", "escape_by_template"]

WEIGHTS = "model.safetensors"
SETTINGS = ("config.json", "generation_config.json", "tokenizer_config.json")
SIZES = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
ESCAPES = [
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ cycler.__init__.__globals__.os.system('touch CANARY') }}",
    "{{ lipsum.__globals__['os'].popen('touch CANARY').read() }}",
    "{{ namespace.__init__.__globals__ }}",
    "{{ raise_exception.__globals__['json'].codecs.open('CANARY', 'w') }}",
    "{{ strftime_now.__closure__[0].cell_contents }}",
    "{{ self.__init__.__globals__ }}",
    "{{ (messages|attr('__class__')|attr('__base__')).__subclasses__() }}",
    "{{ '{0.__class__.__mro__}'.format(messages) }}",
    "{{ '%s' % messages.__class__.__subclasses__() }}",
    "{% include 'CANARY' %}",
    "{% import 'os' as os %}{{ os.system('touch CANARY') }}",
    "{{ messages.append(1) }}{{ messages.__reduce__() }}",
    "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "{{ 'a' * 10**12 }}",
    "{{ 9 ** 9 ** 9 ** 9 }}",
    "{{ [1] * 10**12 }}",
    "{{ " + "(" * 5000 + ")" * 5000 + " }}",
    "{{ raise_exception('no') }}",
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
]
"""Templates that try to reach Python, to read or write files, or to take all time or memory."""


def _text(stream: random.Random, count: int) -> bytes:
    return bytes(stream.randrange(256) for _ in range(count))


def _change(folder: Path, name: str, **values: Any) -> None:
    path = folder / name
    before = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**before, **values}))


def _read_header(folder: Path) -> tuple[dict[str, Any], bytes]:
    data = (folder / WEIGHTS).read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    return json.loads(data[8:end]), data[end:]


def _write_header(folder: Path, header: Any, rest: bytes) -> None:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    (folder / WEIGHTS).write_bytes(len(text).to_bytes(8, "little") + text + rest)


def _change_entry(folder: Path, stream: random.Random, change: Callable[[dict[str, Any]], object]) -> None:
    header, rest = _read_header(folder)
    name = stream.choice([name for name in header if name != "__metadata__"])
    change(header[name])
    _write_header(folder, header, rest)


def cut_settings(folder: Path, stream: random.Random) -> None:
    path = folder / stream.choice(SETTINGS)
    data = path.read_bytes().strip()
    path.write_bytes(data[: stream.randrange(len(data) - 1)])


def cut_weights(folder: Path, stream: random.Random) -> None:
    size = (folder / WEIGHTS).stat().st_size
    os.truncate(folder / WEIGHTS, stream.randrange(size))


def lengthen_weights(folder: Path, stream: random.Random) -> None:
    with open(folder / WEIGHTS, "ab") as file:
        file.write(_text(stream, stream.randint(1, 99)))


def announce_huge_header(folder: Path, stream: random.Random) -> None:
    data = (folder / WEIGHTS).read_bytes()
    size = stream.choice([2**64 - 1, 2**63, 2**40, 10**8 + 1, len(data), len(data) - 7])
    (folder / WEIGHTS).write_bytes(size.to_bytes(8, "little") + data[8:])


def break_header(folder: Path, stream: random.Random) -> None:
    _, rest = _read_header(folder)
    header = stream.choice([_text(stream, 50), b"", b"[]", b"7", b"{}{", b'{"a": ' * 5000, b'{"a":' + b"[" * 50_000])
    _write_header(folder, header, rest)


def change_shape(folder: Path, stream: random.Random) -> None:
    shape = stream.choice(
        [[], [1], [-1, 32], [2**62, 2**62], ["32"], [32.0], None, 7, [0], [1] * 100, [10**30], [True]]
    )
    _change_entry(folder, stream, lambda entry: entry.update(shape=shape))


def change_offsets(folder: Path, stream: random.Random) -> None:
    places = stream.choice([[0, 2**62], [-8, 8], [8, 0], [0], None, "0-8", [0, 1.5], [2**64, 2**64 + 8], [1, 2, 3]])
    _change_entry(folder, stream, lambda entry: entry.update(data_offsets=places))


def change_dtype(folder: Path, stream: random.Random) -> None:
    dtype = stream.choice(["F99", "I32", "BOOL", "F64", "", None, 7, ["F32"], "object", "U32", "C64"])
    _change_entry(folder, stream, lambda entry: entry.update(dtype=dtype))


def rename_tensor(folder: Path, stream: random.Random) -> None:
    header, rest = _read_header(folder)
    name = stream.choice([name for name in header if name != "__metadata__"])
    header[stream.choice([name + "x", "../" + name, "", "evil\0", name.upper()])] = header.pop(name)
    _write_header(folder, header, rest)


def change_sizes(folder: Path, stream: random.Random) -> None:
    value = stream.choice(["32", -1, 0, 10**30, 1.5, [], {}, True, 7919, "a" * 10_000, [[[[]]]]])
    _change(folder, "config.json", **{stream.choice(SIZES): value})


def nest_settings(folder: Path, stream: random.Random) -> None:
    depth = stream.choice([40, 1000, 100_000])
    opened, closed = stream.choice([(b'{"a":', b"}"), (b"[", b"]")])
    inner = opened * depth + b"1" + closed * depth
    (folder / stream.choice(SETTINGS)).write_bytes(b'{"a":' + inner + b"}")


def spoil_settings(folder: Path, stream: random.Random) -> None:
    data = stream.choice(
        [b"", b"[]", b"null", b"7", b'{"a": NaN}', b'{"a": 1, "a": 2}', b"\xff\xfe{}", b"\0" * 99, _text(stream, 99)]
    )
    (folder / stream.choice(SETTINGS)).write_bytes(data)


def blow_up_settings(folder: Path, stream: random.Random) -> None:
    os.truncate(folder / stream.choice([*SETTINGS, "chat_template.jinja"]), (1 << 24) + stream.randrange(1 << 34))


def lead_out_by_index(folder: Path, stream: random.Random) -> None:
    names = [
        "../outside/w.safetensors",
        str(folder.parent / "outside" / "w.safetensors"),
        "..",
        "a/../../x.safetensors",
    ]
    name = stream.choice([*names, "..\\outside\\w.safetensors", "w.safetensors\0", "~/w.safetensors", "w.bin", 7, None])
    header, _ = _read_header(folder)
    (folder / WEIGHTS).rename(folder / "w.safetensors")
    table = dict.fromkeys((key for key in header if key != "__metadata__"), "w.safetensors")
    table[stream.choice(list(table))] = name
    (folder / f"{WEIGHTS}.index.json").write_text(json.dumps({"weight_map": table}))


def contradict_by_index(folder: Path, stream: random.Random) -> None:
    (folder / WEIGHTS).rename(folder / "w.safetensors")
    table = stream.choice([{}, [], None, 7, {"lm_head.weight": "w.safetensors"}, {"x": "gone.safetensors"}])
    (folder / f"{WEIGHTS}.index.json").write_text(json.dumps({"weight_map": table}))


def lead_out_by_link(folder: Path, stream: random.Random) -> None:
    name = stream.choice([*SETTINGS, WEIGHTS, "tokenizer.json", "chat_template.jinja"])
    target = folder.parent / "outside" / name
    (folder / name).rename(target)
    os.symlink(stream.choice([target, Path("..") / "outside" / name, Path("/dev/zero"), Path(name)]), folder / name)


def replace_by_no_file(folder: Path, stream: random.Random) -> None:
    path = folder / stream.choice([*SETTINGS, WEIGHTS, "tokenizer.json", "chat_template.jinja"])
    path.unlink()
    stream.choice([os.mkdir, os.mkfifo])(path)


def ask_for_code(folder: Path, stream: random.Random) -> None:
    (folder / "modeling_evil.py").write_text("open('CANARY', 'w').close()")
    asked = {"auto_map": {"AutoModelForCausalLM": "modeling_evil.Evil"}}
    _change(
        folder, "config.json", **stream.choice([asked, {"trust_remote_code": True}, {**asked, "model_type": "evil"}])
    )


def bring_a_pickle(folder: Path, stream: random.Random) -> None:
    (folder / WEIGHTS).unlink()
    name = stream.choice(["pytorch_model.bin", "model.pt", "model.ckpt", "weights.pkl"])
    (folder / name).write_bytes(b"cos\nsystem\n(S'touch CANARY'\ntR.")


def spoil_tokenizer(folder: Path, stream: random.Random) -> None:
    data = (folder / "tokenizer.json").read_bytes().strip()
    kinds = [data[: stream.randrange(len(data) - 1)], b"", b"{}", b"[" * 100_000, _text(stream, 99), b'{"model": {}}']
    (folder / "tokenizer.json").write_bytes(stream.choice(kinds))


def ask_for_unknown_model(folder: Path, stream: random.Random) -> None:
    value = stream.choice(["evil", "../llama", "os", None, 7, ["llama"], "", "a" * 100_000, {"__class__": "x"}])
    _change(folder, "config.json", **{stream.choice(["model_type", "hidden_act"]): value or "none"})


def escape_by_template(folder: Path, stream: random.Random) -> None:
    (folder / "chat_template.jinja").write_text(stream.choice(ESCAPES))


DAMAGES: list[Callable[[Path, random.Random], None]] = [
    *(cut_settings, cut_weights, lengthen_weights, announce_huge_header, break_header, change_shape, change_offsets),
    *(change_dtype, rename_tensor, change_sizes, nest_settings, spoil_settings, blow_up_settings, lead_out_by_index),
    *(contradict_by_index, lead_out_by_link, replace_by_no_file, ask_for_code, bring_a_pickle, spoil_tokenizer),
    *(ask_for_unknown_model, escape_by_template),
]
