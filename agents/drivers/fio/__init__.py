"""fio: reads and writes of files and devices."""
