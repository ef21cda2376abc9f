"""wrk and wrk2: two kinds of driver with one grammar, as both come from one program."""
