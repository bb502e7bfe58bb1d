"""The code of the confined process that splits submitted code into tokens."""
