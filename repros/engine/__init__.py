"""Everything between a repro script and its verdict; :mod:`repros.engine.pipeline` has the steps in their order."""
