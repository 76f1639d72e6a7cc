"""course.py progress: the exercises, and how far you are."""

import argparse


def main(options: argparse.Namespace) -> int:
    from utils.course import progress

    progress()
    return 0
