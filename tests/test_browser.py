"""The course in a real JupyterLab and a real browser, as a reader meets it."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from utils import ROOT
from utils.command.environment import find_browser

CHROMIUM = find_browser()
SWITCHES = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-quic",
    "--no-first-run",
    "--disable-component-update",
    "--disable-sync",
]
TOKEN = "course"
NOTEBOOK = ".jp-NotebookPanel:not(.lm-mod-hidden)"
READY = """async () => {
    const panel = window.jupyterapp.shell.currentWidget;
    if (!panel || !panel.sessionContext) return false;
    await panel.context.ready; await panel.sessionContext.ready;
    return panel.sessionContext.session?.kernel?.status === 'idle';
}"""
DONE = """() => {
    const panel = window.jupyterapp.shell.currentWidget;
    const cells = panel.content.widgets.filter(c => c.model.type === 'code');
    return cells.every(c => c.model.executionCount && c.model.executionState !== 'running')
        && panel.sessionContext.session?.kernel?.status === 'idle';
}"""
ANSWER = """([key, text]) => {
    const panel = window.jupyterapp.shell.currentWidget, book = panel.content;
    const index = book.widgets.findIndex(c => c.model.id === key);
    book.widgets[index].model.sharedModel.setSource(text);
    book.deselectAll();
    book.activeCellIndex = index;
    window.jupyterapp.commands.execute('notebook:run-cell-and-select-next')
        .then(() => window.jupyterapp.commands.execute('notebook:run-cell-and-select-next'));
}"""
HEAD = "def arithmetic_intensity(m, n, k, bytes_per_element):\n    moved = m * k + k * n + m * n\n"
WRONG = HEAD + "    return m * n * k / (moved * bytes_per_element)\n"
RIGHT = HEAD + "    return 2 * m * n * k / (moved * bytes_per_element)\n"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM, reason="no Chromium or Chrome on this machine"),
]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A JupyterLab started by the course's own command, on a copy of the course."""
    folder = tmp_path_factory.mktemp("course")
    files = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True).split("\0")
    for name in filter(None, files):
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    private = tmp_path_factory.mktemp("jupyter")
    (private / "config").mkdir()
    (private / "config" / "jupyter_server_config.json").write_text(
        json.dumps({"LabApp": {"expose_app_in_browser": True}}), encoding="utf-8"
    )
    settings = private / "settings" / "@jupyterlab"
    tracker = {"windowingMode": "none"}
    manager = {"autosave": False}
    for name, value in {"notebook": tracker, "docmanager": manager}.items():
        (settings / f"{name}-extension").mkdir(parents=True)
        file = "tracker" if name == "notebook" else "plugin"
        (settings / f"{name}-extension" / f"{file}.jupyterlab-settings").write_text(
            json.dumps(value), encoding="utf-8"
        )
    port = free_port()
    code = (
        "from argparse import Namespace; from utils.command.lab import main; "
        f"main(Namespace(port={port}, no_browser=True))"
    )
    environment = os.environ | {
        "PYTHONPATH": str(folder),
        "FEED_THE_GPU_ANSWERS": str(folder / "answers"),
        "JUPYTER_TOKEN": TOKEN,
        "JUPYTER_CONFIG_DIR": str(private / "config"),
        "JUPYTER_DATA_DIR": str(private / "data"),
        "JUPYTER_RUNTIME_DIR": str(private / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(private / "settings"),
    }
    log = (private / "log").open("w", encoding="utf-8")
    server = subprocess.Popen(
        [sys.executable, "-c", code], cwd=folder, env=environment, stdout=log, stderr=log
    )
    try:
        url = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + 150
        while True:
            try:
                urllib.request.urlopen(f"{url}/api?token={TOKEN}", timeout=2)
                break
            except OSError:
                assert server.poll() is None, (private / "log").read_text()[-2000:]
                assert time.monotonic() < deadline, "the server did not answer within 150 s"
                time.sleep(0.3)
        yield url
    finally:
        server.send_signal(signal.SIGINT)
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        yield browser
        browser.close()


def new_page(browser):
    """A page, and the list to which its errors are added."""
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.set_default_timeout(150_000)  # a hung page ends; a busy machine may take long
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    return page, errors


@pytest.fixture
def page(browser):
    """A fresh page whose console errors fail the test."""
    page, errors = new_page(browser)
    yield page
    page.close()
    assert not errors, errors


@pytest.fixture(scope="module")
def chapter_03(browser, address):
    """Chapter 03, run from top to bottom once: a page, and its errors so far."""
    page, errors = new_page(browser)
    open_chapter(page, address, "03_roofline")
    run_all(page, seconds=400)
    yield page, errors
    page.close()


@pytest.fixture
def run_chapter(chapter_03):
    """The run chapter; an error in its console fails the test."""
    page, errors = chapter_03
    yield page
    assert not errors, errors


def open_landing_page(page, address):
    page.goto(f"{address}/?token={TOKEN}")  # as the command opens it
    page.wait_for_selector(".jp-MarkdownViewer h1")


def open_chapter(page, address, name):
    page.goto(f"{address}/lab/tree/chapters/{name}.ipynb?token={TOKEN}")
    page.wait_for_selector(f"{NOTEBOOK} .jp-Cell")
    page.wait_for_function(READY)


def run_all(page, seconds):
    # not awaited in the page: evaluate has no timeout of its own
    page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }")
    page.wait_for_function(DONE, timeout=seconds * 1000)


def test_the_landing_page_is_rendered_and_leads_to_a_chapter(page, address):
    open_landing_page(page, address)
    assert "Feed the GPU" in page.inner_text(".jp-MarkdownViewer h1")
    page.click(".jp-MarkdownViewer a[href*='03_roofline']")
    page.wait_for_selector(f"{NOTEBOOK} .jp-Cell")
    page.wait_for_function(READY)
    assert "Is it bytes or FLOPs?" in page.inner_text(NOTEBOOK)


def test_a_fresh_chapter_runs_unsolved_and_without_warnings(run_chapter):
    page = run_chapter
    warnings = page.locator(f"{NOTEBOOK} [data-mime-type='application/vnd.jupyter.stderr']")
    assert warnings.count() == 0, warnings.first.inner_text()
    assert page.locator(f"{NOTEBOOK} .check-open").count() > 5, "a fresh chapter is unsolved"


def test_the_slider_moves_the_picture(run_chapter):
    page = run_chapter
    slider = page.locator(f"{NOTEBOOK} .jp-OutputArea .widget-slider .noUi-handle").first
    picture = page.locator(f"{NOTEBOOK} .widget-vbox img").first
    before = picture.get_attribute("src")
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    image = json.dumps(f"{NOTEBOOK} .widget-vbox img")
    page.wait_for_function(f"before => document.querySelector({image}).src !== before", arg=before)


def test_a_wrong_answer_is_named_and_the_right_one_passes(run_chapter):
    page = run_chapter
    verdict = page.locator(f"{NOTEBOOK} .check", has_text="03.arithmetic_intensity").first
    page.evaluate(ANSWER, ["arithmetic_intensity", WRONG])
    page.wait_for_selector(f"{NOTEBOOK} .check-fail")
    assert "A multiply-add is two FLOPs" in verdict.inner_text()
    page.evaluate(ANSWER, ["arithmetic_intensity", RIGHT])
    page.wait_for_selector(f"{NOTEBOOK} .check-pass")
    assert "passed, 8 of 8 cases" in verdict.inner_text()


def test_a_prediction_is_kept(run_chapter):
    page = run_chapter
    field = page.locator(f"{NOTEBOOK} .widget-text input").first
    field.fill("twelve")
    page.locator(f"{NOTEBOOK} button", has_text="Commit").first.click()
    page.wait_for_selector(f"{NOTEBOOK} .jp-OutputArea .widget-html >> text=not a number")
    field.fill("12")
    page.locator(f"{NOTEBOOK} button", has_text="Commit").first.click()
    page.wait_for_selector(f"{NOTEBOOK} .jp-OutputArea .widget-html >> text=You predict 12")


def test_a_quiz_answers_at_once(run_chapter):
    page = run_chapter
    page.locator(f"{NOTEBOOK} .jp-OutputArea button.widget-button", has_text="a").first.click()
    page.wait_for_selector(f"{NOTEBOOK} .widget-html .check")
