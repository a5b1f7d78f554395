-- Purpose: sets what the room does.
-- KEYS: KEYS[1] line, KEYS[2] seen, KEYS[3] called, KEYS[4] inside, KEYS[5] state
-- ARGV: mode: 1 open (or scheduled: the clock says which), 2 paused, 3 sold out, 4 closed
-- Reply: 1

if not load_state() then
  return NOT_CONFIGURED
end
set('mode', tonumber(ARGV[1]))
save()
return 1
