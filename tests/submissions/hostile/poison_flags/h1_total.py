import os

os.environ["XLA_FLAGS"] = "--xla_no_such_flag"
import jax

jax.config.update("jax_compilation_cache_dir", "@TARGET@/cache")
jax.config.update("jax_enable_x64", True)
