"""The command's way in, so small that Ctrl-C ends it quietly while the rest is imported.

In the tenth of a second before, while Python itself starts, nothing of ours can catch it.
"""

import sys


def main() -> None:
    """Run the command line and leave with its exit status."""
    try:
        from pgrerun import cli
    except KeyboardInterrupt:
        sys.exit(130)
    cli.main()


if __name__ == "__main__":
    main()
