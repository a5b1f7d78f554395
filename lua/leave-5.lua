-- Purpose: gives up a visitor's place, call and session.
-- KEYS: KEYS[1] line, KEYS[2] seen, KEYS[3] called, KEYS[4] inside, KEYS[5] state
-- ARGV: visitor
-- Reply: 1 if there was one, else 0

if not load_state() then
  return NOT_CONFIGURED
end
local visitor = ARGV[1]
if leave_line(visitor) == 1 then
  note_over({ visitor })
  return 1
end
if redis.call('ZSCORE', INSIDE, visitor) then
  end_session(visitor)
  return 1
end
if redis.call('ZSCORE', CALLED, visitor) then
  drop(CALLED, { visitor })
  return 1
end
return 0
