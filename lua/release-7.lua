-- Purpose: ends a session and frees its slot, once.
-- KEYS: KEYS[1] line, KEYS[2] seen, KEYS[3] called, KEYS[4] inside, KEYS[5] state, KEYS[6] notes, KEYS[7] over
-- ARGV: visitor
-- Reply: 1 if this call ended it, else 0

if not load_state() then
  return NOT_CONFIGURED
end
if not redis.call('ZSCORE', INSIDE, ARGV[1]) then
  return 0
end
drop(INSIDE, { ARGV[1] })
note_over({ ARGV[1] })
save()
return 1
