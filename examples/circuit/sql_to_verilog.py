"""From SQL to Verilog in ten lines: which of the last quotes of a symbol was a trade close to, as a circuit?

    python examples/circuit/sql_to_verilog.py

The circuit is laid out for the rows in the two files, run on them, and written to close_quotes.v: one module for each
part, to be read by any tool for FPGAs. `handfast synthesize` counts what it takes of one.
"""

import sys
from pathlib import Path

import pyarrow.csv

import handfast as hf
from handfast.engines.hardware import engine, verilog

here = Path(__file__).parent
tables = {name: pyarrow.csv.read_csv(here / f"{name}s.csv") for name in ("trade", "quote")}
for name, rows in tables.items():  # a circuit computes with whole cents, not with floating point
    cents = pyarrow.compute.cast(pyarrow.compute.round(pyarrow.compute.multiply(rows["price"], 100)), "int32")
    tables[name] = rows.drop_columns("price").append_column("cents", cents)

close = "trade.symbol = quote.symbol AND ABS(trade.cents - quote.cents) <= 5"
spec = hf.JoinSpec(("trade", "quote"), close, window="16 rows", time="ts")
job = engine.prepare(spec, tables, hf.HardwareOptions(cores=4))
matches = job.table(job.run().results)
target = Path(sys.argv[1] if len(sys.argv) > 1 else "close_quotes.v")
target.write_text(verilog.export(job.design.build(), name="close_quotes"))
print(f"{len(matches)} matches; the circuit is in {target.name}: {target.read_text().count('endmodule')} modules")
