"""What every test process needs."""

import signal

from hypothesis import settings

# A test run that a script started in the background ignores Ctrl-C, and so would every process that it starts: then
# nothing that is interrupted on purpose would notice.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says something about the machine, not about the code.
settings.register_profile("logkeep", deadline=None)
settings.load_profile("logkeep")
