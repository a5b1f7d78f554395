//! Pages and assets that visitors see while they wait.
