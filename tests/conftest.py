"""What all tests share: interrupts, which a shell turns off for what it starts in the background."""

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # children would inherit that, and wait for their interrupt
    signal.signal(signal.SIGINT, signal.default_int_handler)
