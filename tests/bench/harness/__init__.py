"""The inside of scripts/bench: what is measured is in parts/, beside whom in peers.py, what must be seen in bars.py."""
