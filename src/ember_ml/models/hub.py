"""Find the folder of a model: one on this machine, or one that huggingface_hub keeps in its cache."""

from __future__ import annotations

import os
import re

from ember_ml.models.folder import COMPANIONS, INDEX, Folder

__all__ = ["open_folder"]

_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
_WANTED = ["config.json", "generation_config.json", "*.safetensors", INDEX, *COMPANIONS]
_REFUSED = ["*/*", "consolidated*.safetensors"]
"""Folders of other formats, and the same weights under the names of another program."""
_NESTED = ["modules.json", "sentence_bert_config.json", "*_*/config.json", "*_*/model.safetensors"]
"""Of models in several folders; those of other formats have no underscore in their names."""


def open_folder(source: str | os.PathLike[str], revision: str | None = None, *, has_folders: bool = False) -> Folder:
    """Return the folder of a model, of which ``source`` is the path or, as ``"organization/name"``, the id on the Hub.

    A folder of that path comes first. Otherwise huggingface_hub finds the model in its cache, or downloads what is
    missing there: settings, weights and the files of the tokenizer, no programs and no pickles. Its own variables
    apply: ``HF_HUB_OFFLINE=1`` takes the cache alone, ``HF_HUB_CACHE`` says where it is, ``HF_TOKEN`` who asks.
    ``revision`` is a branch, a tag or a commit. With ``has_folders`` the folders of sentence encoders come too.
    """
    if isinstance(source, str) and _ID.fullmatch(source) and not os.path.exists(source):
        return Folder(_fetch(source, revision, has_folders))
    if revision is not None:
        raise ValueError(f"a revision is of a model on the Hub, and {os.fspath(source)!r} is a path; leave it out")
    return Folder(source)


def _fetch(name: str, revision: str | None, has_folders: bool) -> str:
    """Return the path of a snapshot in the cache, complete."""
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise ImportError(
            f"there is no folder {name}. If it is the id of a model on the Hub, that needs the package "
            "huggingface_hub: pip install 'ember-ml[models]'"
        ) from error
    wanted, refused = (_WANTED + _NESTED, _REFUSED[1:]) if has_folders else (_WANTED, _REFUSED)
    try:
        return snapshot_download(name, revision=revision, allow_patterns=wanted, ignore_patterns=refused)
    except Exception as error:  # of the network, of the cache, of the id: the library has no common class for them
        at = "" if revision is None else f" at the revision {revision!r}"
        reason = " ".join(str(error).split())
        raise FileNotFoundError(
            f"there is no folder {name}, and huggingface_hub finds no model {name}{at}: {reason}"
        ) from error
