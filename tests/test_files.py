"""Writing a file whole or not at all, and keeping a damaged one."""

import os

import pytest

from utils import files


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_text_is_written_with_its_folder_and_the_same_bytes_everywhere(tmp_path):
    path = tmp_path / "new" / "a.txt"
    for text in ("π\n", "shorter\nnow\n"):
        files.write_whole(path, text)
        assert path.read_bytes() == text.encode()
    assert names(path.parent) == ["a.txt"]


def test_a_failed_write_leaves_the_old_file_and_nothing_beside_it(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    files.write_whole(path, "old")

    def full_disk(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", full_disk)
    with pytest.raises(OSError, match="no space"):
        files.write_whole(path, "half")
    assert path.read_text(encoding="utf-8") == "old" and names(tmp_path) == ["a.txt"]


def test_an_error_while_bytes_are_written_leaves_the_old_file(tmp_path):
    path = tmp_path / "new" / "a.bin"
    with files.whole_file(path) as file:
        file.write(b"\r\n")
        file.write(b"\0")
    with pytest.raises(KeyboardInterrupt), files.whole_file(path) as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"\r\n\0" and names(path.parent) == ["a.bin"]


@pytest.mark.parametrize(("refusals", "written"), [(2, "new"), (99, "old")])
def test_a_file_that_is_open_elsewhere_is_waited_for_but_not_for_ever(
    tmp_path, monkeypatch, refusals, written
):
    path, replace, tried = tmp_path / "a.txt", os.replace, []
    path.write_text("old", encoding="utf-8")

    def open_elsewhere(*paths):
        tried.append(paths)
        if len(tried) <= refusals:
            raise PermissionError("used by another process")
        replace(*paths)

    monkeypatch.setattr(os, "replace", open_elsewhere)
    monkeypatch.setattr(files.time, "sleep", lambda seconds: None)
    if written == "new":
        files.write_whole(path, "new")
    else:
        with pytest.raises(PermissionError):
            files.write_whole(path, "new")
    assert path.read_text(encoding="utf-8") == written and names(tmp_path) == ["a.txt"]


def test_two_damaged_files_are_both_kept(tmp_path):
    path = tmp_path / "progress.json"
    for number, text in enumerate(("{first", "{second"), start=1):
        path.write_text(text, encoding="utf-8")
        aside = files.set_aside(path)
        assert aside.name == f"progress.damaged-{number}.json"
    assert names(tmp_path) == ["progress.damaged-1.json", "progress.damaged-2.json"]
    assert (tmp_path / "progress.damaged-1.json").read_text(encoding="utf-8") == "{first"
