"""Tests never touch a reader's answers: the whole session uses a temporary folder."""

import os
import tempfile

_answers = tempfile.TemporaryDirectory(prefix="answers-", ignore_cleanup_errors=True)
os.environ["FEED_THE_GPU_ANSWERS"] = _answers.name
