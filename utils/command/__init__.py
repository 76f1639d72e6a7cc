"""What course.py hands over to: one module a verb, each with main(options) -> exit code.

install is the exception: it runs before anything is installed, so it is standard library only.
"""
