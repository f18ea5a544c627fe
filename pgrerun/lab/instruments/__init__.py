"""What is measured, and how: one module per instrument.

    clock       a stopwatch
    counters    PostgreSQL's statistics around a block
    wal         how much WAL was written, by page and record
    server_log  checkpoints, waits for locks and lightweight locks, as the server's log tells them
    sizes       pages of relations
    pages       pages in the pool, pages a statement touches, what is on a page
    plans       the optimizer's choice
    pgbench     client load
    server_load the same scripts without a client
    process_table  CPU time, I/O and context switches by the kernel's account
    off_cpu     what backends wait for, how often they are switched out, and where
    cachelines  words that two processors change side by side
    switch_costs  what context switches, messages and handoffs cost
    callgrind   instructions by function
    perf        samples by function
    wire        a connection spoken to without a library, call by call
    single_user commands to a backend that has no client
    cold_files  files that the operating system has forgotten
    machine     the hardware underneath, and who else uses it

All take a server of `pgrerun.lab.server` or a connection to one, and raise CannotMeasure
where it, or the machine, lacks what they need.
"""

PAGE = 8192  # bytes; every release built with the default
