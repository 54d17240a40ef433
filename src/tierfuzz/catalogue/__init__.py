"""The catalogue of known faults: public reports retold as cases, most of them with a planted fault."""
