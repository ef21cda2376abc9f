"""What a load came to, whatever tool made it: reports, figures per request, spectra, sums over several tools."""
