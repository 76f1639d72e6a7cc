"""What went wrong, as a sentence that names the kernel, the program, the argument and the line."""

from __future__ import annotations

import linecache
import os
import sys
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import numpy as np
import triton

from utils.meter.kernel_report import Problem
from utils.meter.memory import Access, Argument, OutOfBounds
from utils.meter.races import Clash

# Frames of these folders are not the reader's code. A frame may name a folder by a link to it.
LIBRARIES = tuple(
    str(path.parent) + os.sep
    for file in (__file__, os.__file__, np.__file__, triton.__file__)
    for path in (Path(file), Path(file).resolve())
)


def exception(launch: Any, recorder: Any, error: Exception) -> Problem:
    """The problem behind an exception that ended a program."""
    place = _line(_last_frame(error.__traceback__))
    where = f"{launch.name}, program {recorder.program}"
    if isinstance(error, OutOfBounds):
        return _out_of_bounds(error, where, place, recorder.program)
    text = str(error) or type(error).__name__
    if isinstance(error, NotImplementedError):
        kind, text = "unsupported", f"{text}."
    elif isinstance(error, AttributeError) and "InterpreterBuilder" in text:
        kind = "unsupported"
        text = f"this version of triton's interpreter has no {text.rsplit(' ', 1)[-1]}."
    else:
        kind, text = "error", f"{type(error).__name__}: {text}" + ("" if text[-1] in ".!?" else ".")
    return Problem(kind, f"{where}: {text}{place[1]}", program=recorder.program, line=place[0])


def _out_of_bounds(error: OutOfBounds, where: str, place: tuple, program: tuple) -> Problem:
    argument = error.argument
    if argument is None:
        return Problem(
            "out of bounds",
            f"{where}: an address that comes from no pointer argument ({error.byte:#x}), so no "
            f"tensor holds it. Pointers read from memory can't be metered.{place[1]}",
            program=program, line=place[0],
        )  # fmt: skip
    index = int(argument.index(error.byte))
    n = argument.n_elements
    size = f"{argument} has {n:,} elements"
    misaligned = error.byte % error.size
    if not n:
        what = f"{size}, so no index is inside"
    elif index < 0:
        what = f"{size}; a negative index lies before the first"
    elif index >= argument.n_span:
        last = argument.n_span - 1
        what = f"{size}, the last at index {last:,}"
    elif misaligned:
        what = f"an element of {error.size} bytes can't start there: the address is not aligned"
    elif argument.inside is not None and not argument.inside[index]:
        what = (f"{size} with strides {argument.stride}: this index lies between them, in memory "
                "that belongs to another view")  # fmt: skip
    else:
        what = f"{size}; {error.size} bytes from there reach past the end"
    hint = ""
    if abs(index) * argument.itemsize >= 2**30:
        hint = (" An index this large is often a product that passed 2,147,483,647 in int32: "
                "convert a factor with .to(tl.int64).")  # fmt: skip
    lanes = f"{error.bad:,} of {error.lanes:,} lanes" if error.lanes > 1 else "a single lane"
    return Problem(
        "out of bounds",
        f"{where}: index {index:,} of {argument.name} is out of bounds ({lanes}). {what}. "
        f"{error.how[0].upper()}{error.how[1:]}.{hint}{place[1]}",
        argument.name, program, index, place[0],
    )  # fmt: skip


def time_up(launch: Any, recorder: Any, seconds: float, error: BaseException) -> Problem:
    """The kernel was stopped by the clock."""
    line, text = _line(_last_frame(error.__traceback__))
    done, all_programs = recorder.programs_done, recorder.n_programs
    why = (f"{done:,} of {all_programs:,} programs had finished, so it may only be slow: use a "
           "smaller input or a larger limit" if done else
           "its first program never ended: look for a loop whose end never comes")  # fmt: skip
    if recorder.n_atomics:
        why += (". It uses atomics: programs run one after another here, so one that waits for a "
                "later one waits for ever")  # fmt: skip
    return Problem(
        "time limit",
        f"{launch.name}, program {recorder.program}: stopped after {seconds:g} s; {why}.{text}",
        program=recorder.program, line=line,
    )  # fmt: skip


def clash(launch: Any, recorder: Any, access: Access, found: Clash) -> Problem:
    """Two programs, two lanes, or an element nobody wrote."""
    line, place = _line(_current_frame())
    name = access.argument.name
    where = f"{launch.name}, program {recorder.program}"
    at = f"{name}[{found.element}]" if len(access.argument.shape) == 1 else (
        f"{name} at index {found.element}")  # fmt: skip
    kind = "race"
    if found.kind == "unwritten":
        kind = "uninitialised read"
        text = (f"{where} reads {at}, an output that nothing has written yet: it holds whatever "
                "was in memory.")  # fmt: skip
    elif found.kind == "lanes":
        text = (f"{where}: two lanes of one store write different values to {at}, and which one "
                "stays is undefined.")  # fmt: skip
    elif found.kind == "write":
        one, two = found.values
        text = (f"programs {found.other} and {recorder.program} of {launch.name} both write {at}, "
                f"{one} and {two}, without an atomic: the last to run wins.")  # fmt: skip
    else:
        text = (f"programs {found.other} and {recorder.program} of {launch.name} both use {at}; "
                "one writes what the other reads, and nothing orders them.")  # fmt: skip
    return Problem(kind, text + place, name, recorder.program, found.element, line)


def unwritten(launch: Any, argument: Argument, missing: np.ndarray) -> Problem:
    """Elements of an output that no program wrote."""
    n, first = int(missing.sum()), int(np.argmax(missing))
    return Problem(
        "unwritten",
        f"{launch.name} never writes {n:,} of the {argument.n_elements:,} elements of "
        f"{argument}; the first is index {first:,}.",
        argument.name, None, first,
    )  # fmt: skip


def undefined(launch: Any, recorder: Any, name: str) -> Problem:
    """The program's result changes with what masked-off lanes hold."""
    return Problem(
        "undefined lanes",
        f"{launch.name}, program {recorder.program}: the result depends on lanes of {name} that "
        "the mask leaves out. Without `other` they hold anything on a GPU: pass `other`, or keep "
        "them out with tl.where.",
        name, recorder.program,
    )  # fmt: skip


def _is_readers(frame: FrameType, line: int) -> bool:
    filename = frame.f_code.co_filename
    return not filename.startswith(LIBRARIES) and bool(linecache.getline(filename, line))


def _last_frame(trace: TracebackType | None) -> tuple[str, int] | None:
    """The innermost line of the reader's own code."""
    found = None
    while trace is not None:
        if _is_readers(trace.tb_frame, trace.tb_lineno):
            found = (trace.tb_frame.f_code.co_filename, trace.tb_lineno)
        trace = trace.tb_next
    return found


def _current_frame() -> tuple[str, int] | None:
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if _is_readers(frame, frame.f_lineno):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return None


def _line(place: tuple[str, int] | None) -> tuple[int | None, str]:
    """(line number, " Line 12: tl.store(...)")."""
    if place is None:
        return None, ""
    text = linecache.getline(*place).strip()
    return place[1], f" Line {place[1]}: {text}" if text else ""
