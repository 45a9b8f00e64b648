# Written by conda.py. The last is the library, of rules that are not in a clone.
python -m pip install --no-deps cherimoya==0.3.1 tangermeme==1.6.0 ${VEFF_HOME:+"$VEFF_HOME"}
