"""measure(): run a Triton kernel on paper, and say what it did and what is wrong with it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable
from typing import Any

from utils.hardware import Accelerator
from utils.hardware import accelerator as find_accelerator
from utils.meter.kernel_report import ArgumentReport, KernelReport, Problem
from utils.meter.report import Cost

MOST_PROBLEMS = 5


def measure(
    kernel: Any,
    grid: tuple[int, ...] | Callable[[dict[str, Any]], tuple[int, ...]],
    *args: Any,
    accelerator: str | Accelerator = "A100 80GB SXM",
    outputs: Iterable[str] | None = None,
    seconds: float = 20.0,
    **kwargs: Any,
) -> KernelReport:
    """Run `kernel[grid](*args, **kwargs)` program by program on the CPU, checked and counted.

    kernel: made by @triton.jit, also under @triton.autotune or @triton.heuristics.
    args, kwargs: the kernel's own, as in a launch. CPU tensors are changed in place, as a launch
    would change them; tensors on a GPU are copied, metered on the CPU and copied back.
    accelerator: whose L2, cores, peak and bandwidth are modelled.
    outputs: names of arguments that the kernel must write completely and not read before. They are
    filled with NaN (integers: the smallest) first. Leave out what it adds to or changes in place.
    seconds: the time limit, in seconds of computing: waiting for a busy machine does not count.

    What is wrong with the kernel is in the report, never raised. Raises ValueError for a wrong
    argument of measure() itself, and where Triton is missing.
    """
    from utils.meter import interpreter
    from utils.meter.launch import grid_trouble, prepare, resolve_grid

    chip = accelerator if isinstance(accelerator, Accelerator) else find_accelerator(accelerator)
    if not seconds > 0:
        raise ValueError(f"seconds={seconds!r}: expected a positive number")
    started = time.perf_counter()
    _, _, remark = interpreter.load()
    launch = prepare(kernel, args, kwargs, outputs)
    sizes = resolve_grid(grid, launch.arguments)
    run = _Run(launch, chip, sizes, [remark] if remark else [])
    trouble = grid_trouble(sizes, launch)
    if trouble:
        run.problems.append(Problem("grid", f"{launch.name}: {trouble}"))
    else:
        run.run(seconds)
        launch.copy_back()
    return run.report(time.perf_counter() - started)


class _Run:
    """One metered launch: executes the programs, gathers problems, writes the report."""

    def __init__(self, launch: Any, chip: Accelerator, grid: tuple[int, int, int], notes: list):
        from utils.meter.l2 import L2
        from utils.meter.races import poison_shadow
        from utils.meter.recorder import Recorder

        self.launch, self.chip, self.grid = launch, chip, grid
        self.wave = chip.cores or 1
        n_sectors = launch.memory.number_sectors()
        self.l2 = L2(n_sectors, chip.onchip_bytes, self.wave)
        self.recorder = Recorder(launch.memory, self.l2, self.clash)
        for argument in launch.memory.arguments.values():
            if argument.is_output:
                poison_shadow(argument.storage)
        self.problems: list[Problem] = []
        self.warnings = [*launch.warnings, *notes]
        self.said: set[tuple[str, int]] = set()
        self.reruns = 0

    def run(self, seconds: float) -> None:
        """Every program, in launch order: x fastest. Stops at the first that can't go on."""
        from utils.meter import explain, interpreter
        from utils.meter.watchdog import TimeUp, time_limit

        launch, recorder = self.launch, self.recorder
        recorder.n_programs = self.grid[0] * self.grid[1] * self.grid[2]
        with interpreter.interpreting(recorder, self.warn) as rewrite:
            try:
                with time_limit(seconds):
                    self.run_programs(rewrite(launch.function))
            except TimeUp as error:
                self.problems.append(explain.time_up(launch, recorder, seconds, error))
            except Exception as error:
                self.problems.append(explain.exception(launch, recorder, error))
        self.l2.finish()
        if recorder.programs_done == recorder.n_programs:
            self.find_unwritten()
        if not self.problems:
            self.ask_compiler()

    def ask_compiler(self) -> None:
        from utils.meter.accepts import refused

        said = refused(self.launch.kernel, self.launch.arguments)
        if said:
            text = f"{self.launch.name} runs on paper, but Triton's compiler refuses it: {said}"
            self.problems.append(Problem("error", text))

    def run_programs(self, function: Callable) -> None:
        from utils.meter import interpreter

        module, _, _ = interpreter.load()
        arguments = interpreter.prepare(module, self.launch.function, self.launch.arguments)
        builder, recorder, (nx, ny, nz) = module.interpreter_builder, self.recorder, self.grid
        builder.set_grid_dim(nx, ny, nz)
        for z, y, x in itertools.product(range(nz), range(ny), range(nx)):
            builder.set_grid_idx(x, y, z)
            recorder.start_program((x, y, z))
            function(**arguments)
            if recorder.undefined_argument:
                self.run_again(function, arguments)
            recorder.programs_done += 1

    def run_again(self, function: Callable, arguments: dict[str, Any]) -> None:
        """Does this program's result depend on masked-off lanes? See undefined.py."""
        from utils.meter import explain
        from utils.meter.undefined import MOST_PROGRAMS, Effects

        recorder = self.recorder
        if self.reruns == MOST_PROGRAMS or any(p.kind == "undefined lanes" for p in self.problems):
            return
        self.reruns += 1
        first, name = recorder.effects, recorder.undefined_argument
        first.undo()
        recorder.effects, recorder.again = Effects(), True
        try:
            function(**arguments)
            same = first.same_as(recorder.effects)
        except Exception:
            same = False
        finally:
            recorder.again = False
        if not same:
            self.problems.append(explain.undefined(self.launch, recorder, name))

    def warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)

    def clash(self, access: Any, clash: Any) -> None:
        from utils.meter import explain

        seen = (clash.kind, access.argument.number)
        if seen in self.said or len(self.said) == MOST_PROBLEMS:
            return
        self.said.add(seen)
        self.problems.append(explain.clash(self.launch, self.recorder, access, clash))

    def find_unwritten(self) -> None:
        from utils.meter import explain

        for number, argument in self.launch.memory.arguments.items():
            missing = ~self.recorder.was_written[number]
            if argument.inside is not None:
                missing &= argument.inside
            if argument.is_output and missing.any():
                self.problems.append(explain.unwritten(self.launch, argument, missing))

    def report(self, seconds: float) -> KernelReport:
        recorder, arguments = self.recorder, self.launch.memory.arguments
        programs = self.grid[0] * self.grid[1] * self.grid[2]
        rows = []
        for number, argument in arguments.items():
            read, written = recorder.reads[number], recorder.writes[number]
            size = argument.itemsize
            rows.append(ArgumentReport(
                argument.name, argument.shape, argument.dtype,
                read.bytes, int(recorder.was_read[number].sum()) * size, read.sectors,
                read.coalescing,
                written.bytes, int(recorder.was_written[number].sum()) * size, written.sectors,
                written.coalescing,
            ))  # fmt: skip
        cost = Cost(self.l2.bytes_read, self.l2.bytes_written, dict(recorder.flops))
        return KernelReport(
            kernel=self.launch.name, grid=self.grid, accelerator=self.chip.name,
            programs=programs, programs_run=recorder.programs_done,
            waves=-(-programs // self.wave), wave=self.wave, arguments=tuple(rows), cost=cost,
            modelled=cost.on(self.chip), l2_hit_rate=self.l2.hit_rate,
            l2_capacity_bytes=self.chip.onchip_bytes, atomics=recorder.n_atomics,
            problems=tuple(self.problems), warnings=tuple(self.warnings),
            seconds_metered=seconds,
        )  # fmt: skip
