"""python -m utils.command.profile: measure this machine, once, into the answers folder."""

if __name__ == "__main__":
    from utils.hardware import probe

    probe()
