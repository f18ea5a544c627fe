"""What is measured, and how: one module per instrument.

    clock       a stopwatch
    counters    PostgreSQL's statistics around a block; WAL by page and record
    pages       pages in the pool, pages a statement touches, what is on a page
    plans       the optimizer's choice, with a fingerprint
    pgbench     client load
    processes   CPU time and I/O by the kernel's account
    waits       what backends wait for, by samples
    flushing    how long a flush takes, and one made slow on purpose
    cachelines  words that two processors change side by side
    switches    how often backends give up their processor
    switching   what it costs that one process wakes another
    callgrind   instructions by function
    perf        samples by function
    sleeps      context switches by call chain
    machine     the hardware underneath, and who else uses it

All take a server of `pgrerun.server` or a connection to one, and raise CannotMeasure
where it, or the machine, lacks what they need.
"""

PAGE = 8192  # bytes; every release built with the default
