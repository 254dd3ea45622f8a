package hotparam

// Buckets is how many parts a window has.
const Buckets = buckets
