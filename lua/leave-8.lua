-- Purpose: gives up a visitor's place, call and session, or takes them away.
-- KEYS: KEYS[1] line, KEYS[2] seen, KEYS[3] called, KEYS[4] inside, KEYS[5] state, KEYS[6] notes, KEYS[7] over, KEYS[8] roster
-- ARGV: visitor, 1 to note it even of somebody the room does not know (whom a loss made it forget)
-- Reply: 1 if there was one, else 0

if not load_state() then
  return NOT_CONFIGURED
end
local visitor = ARGV[1]

local function leave()
  if leave_line(visitor) == 1 then
    return 1
  end
  for _, key in ipairs({ CALLED, INSIDE }) do
    if redis.call('ZSCORE', key, visitor) then
      drop(key, { visitor })
      return 1
    end
  end
  if not roster_place(visitor) then
    return 0
  elseif may_leave_roster() then
    redis.call('ZREM', ROSTER, visitor)
  end
  -- Else the draw passes over who left.
  return 1
end

local left = leave()
if left == 1 or ARGV[2] == '1' then
  note_over({ visitor })
  save()
end
return left
