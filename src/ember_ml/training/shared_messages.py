"""Messages between two processes through shared memory: pickled data whose arrays are copied once on each side.

The memory is that of files without a name, whose descriptors go over the connection: whatever happens to the processes,
the system frees it with the last of them. The connection itself carries a few bytes for each message, so that neither
side ever waits for the other to read.
"""

from __future__ import annotations

import mmap
import os
import pickle
import struct
import tempfile
from multiprocessing import reduction
from multiprocessing.connection import Connection
from typing import Any

__all__ = ["Message", "Receiver", "Sender", "SharedData", "receive_shared"]

_NOTE = struct.Struct("<?q")  # whether a descriptor follows, and the number of the block
_COUNT = struct.Struct("<q")
_ALIGNMENT = 64
_LEAST = 1 << 16  # bytes of a block


class Message:
    """Data as bytes: a table of the sizes of the parts, the pickle, and the memory of its arrays."""

    size: int
    """The number of bytes."""

    def __init__(self, data: Any) -> None:
        buffers: list[pickle.PickleBuffer] = []
        head = pickle.dumps(data, protocol=5, buffer_callback=buffers.append)
        self._parts = [memoryview(head), *(buffer.raw() for buffer in buffers)]
        sizes = [len(part) for part in self._parts]
        self._table = struct.pack(f"<{len(sizes) + 1}q", len(sizes), *sizes)
        self._places, self.size = _lay_out(sizes)

    def write(self, memory: Any) -> None:
        """Copy the message into memory that has room for it."""
        memory[: len(self._table)] = self._table
        with memoryview(memory) as view:
            for place, part in zip(self._places, self._parts, strict=True):
                view[place : place + len(part)] = part


def _lay_out(sizes: list[int]) -> tuple[list[int], int]:
    """Return where the parts lie, and the size of all."""
    places, end = [], _COUNT.size * (len(sizes) + 1)
    for size in sizes:
        start = -(-end // _ALIGNMENT) * _ALIGNMENT
        places.append(start)
        end = start + size
    return places, end


def _split(view: memoryview) -> list[memoryview]:
    """Return the parts of a message in memory."""
    (count,) = _COUNT.unpack_from(view)
    sizes = list(struct.unpack_from(f"<{count}q", view, _COUNT.size))
    places, _ = _lay_out(sizes)
    return [view[place : place + size] for place, size in zip(places, sizes, strict=True)]


def _make_file(size: int) -> int:
    """Return the descriptor of a file in memory without a name."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("ember-ml")
    else:  # macOS: the system writes little of a file that soon is gone
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.truncate(descriptor, size)
    return descriptor


def _send_descriptor(connection: Connection, descriptor: int) -> None:
    reduction.send_handle(connection, descriptor, None)


def _receive_descriptor(connection: Connection) -> int:
    return reduction.recv_handle(connection)


class Sender:
    """Sends messages; the caller sees to it that it is at most ``ahead`` messages ahead of the receiver."""

    def __init__(self, connection: Connection, ahead: int) -> None:
        self._connection = connection
        self._blocks: list[mmap.mmap | None] = [None] * ahead
        self._number = 0

    def send(self, message: Message) -> None:
        """Write the message into the block whose turn it is, and tell the receiver."""
        number = self._number
        self._number = (number + 1) % len(self._blocks)
        block = self._blocks[number]
        if block is not None and len(block) >= message.size:
            message.write(block)
            self._connection.send_bytes(_NOTE.pack(False, number))
            return
        if block is not None:
            block.close()
        size = max(message.size + message.size // 4, _LEAST)
        descriptor = _make_file(size)
        try:
            self._blocks[number] = block = mmap.mmap(descriptor, size)
            message.write(block)
            self._connection.send_bytes(_NOTE.pack(True, number))
            _send_descriptor(self._connection, descriptor)
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Free the memory and close the connection."""
        _close_blocks(self._blocks)
        self._connection.close()


class Receiver:
    """Receives what a :class:`Sender` sends; ``EOFError`` or ``OSError`` where the other process has gone."""

    def __init__(self, connection: Connection, ahead: int) -> None:
        self._connection = connection
        self._blocks: list[mmap.mmap | None] = [None] * ahead

    def receive(self) -> Any:
        """Wait for a message and return its data, in memory of its own."""
        has_descriptor, number = _NOTE.unpack(self._connection.recv_bytes())
        if has_descriptor:
            old = self._blocks[number]
            if old is not None:
                old.close()
            self._blocks[number] = _map(_receive_descriptor(self._connection), mmap.ACCESS_WRITE)
        block = self._blocks[number]
        assert block is not None
        view = memoryview(block)
        head, *parts = _split(view)
        try:
            return pickle.loads(head, buffers=[bytearray(part) for part in parts])
        finally:
            for part in (view, head, *parts):  # a block that is looked at cannot be closed
                part.release()

    def close(self) -> None:
        """Free the memory and close the connection."""
        _close_blocks(self._blocks)
        self._connection.close()


def _map(descriptor: int, access: int) -> mmap.mmap:
    try:
        return mmap.mmap(descriptor, 0, access=access)
    finally:
        os.close(descriptor)


def _close_blocks(blocks: list[mmap.mmap | None]) -> None:
    for block in blocks:
        if block is not None:
            block.close()
    blocks.clear()


class SharedData:
    """Data that any number of processes get, whose arrays lie in memory once."""

    def __init__(self, data: Any) -> None:
        message = Message(data)
        self._descriptor = _make_file(message.size)
        with mmap.mmap(self._descriptor, message.size) as memory:
            message.write(memory)

    def send(self, connection: Connection) -> None:
        """Give the data to the process at the other end."""
        _send_descriptor(connection, self._descriptor)

    def close(self) -> None:
        """Let go of the data; the processes that have them keep them."""
        os.close(self._descriptor)


def receive_shared(connection: Connection) -> Any:
    """Return the data of :class:`SharedData`; a process that writes to an array gets its own copy of that page."""
    head, *parts = _split(memoryview(_map(_receive_descriptor(connection), mmap.ACCESS_COPY)))
    return pickle.loads(head, buffers=parts)
