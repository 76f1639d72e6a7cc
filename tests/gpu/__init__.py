"""What a GPU says of the course's kernels: `python3 -m tests.gpu`, one command, under 8 minutes."""
