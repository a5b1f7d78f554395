-- Purpose: gives each arrival one place, in order. The repeat of a join only reads.
-- KEYS: KEYS[1] line, KEYS[2] seen, KEYS[3] called, KEYS[4] inside, KEYS[5] state, KEYS[6] over, KEYS[7] roster
-- ARGV: four per arrival: visitor, proven score or '', when the proof was issued in ms or '', 1 if an idle room may let
--   them straight in; then the epoch the caller knows or 0 (replies -2 if it is another)
-- Reply: a place per arrival, flat

local loaded = false

-- Straight in: only while nobody present waits, so nobody is overtaken (G3).
local function may_pass(may_enter)
  if not may_enter or mode() ~= OPEN or now_ms < state.settle_until_ms then
    return false
  end
  if #redis.call('ZRANGEBYSCORE', LINE, '(0', '+inf', 'LIMIT', 0, 1) > 0 then
    return false
  end
  if tokens('call') < 1 or tokens('entry') < 1 or not same_history() then
    return false
  end
  expire(50)
  return free_slots() > 0
end

local function newcomer(visitor, may_enter)
  if not takes_visitors() then
    return place(P_NOT_OPEN, mode())
  end
  local score = math.max(now_us, state.last_score + 1)
  -- An opening that was put off after the draw does not make another.
  if mode() == PREQUEUE and state.lottery == 1 and state.drawn == 0 and not is_sealed() then
    -- Nobody takes part in a draw whose seed could still be chosen.
    if redis.call('HEXISTS', STATE, 'commitment') == 0 then
      return place(P_NOT_OPEN, SCHEDULED)
    end
    return enter_roster(visitor, math.max(score, state.last_over + 1))
  end
  if may_pass(may_enter) then
    take('call', 1)
    add('called_total', 1)
    set('last_score', score)
    return admit(visitor, score, now_ms)
  end
  local waiting = enter_line(visitor, score)
  -- The last of the line is behind everybody, which is known here at no cost; unless others are still to come before
  -- them, by the draw or back from a lost history.
  if mode() ~= DRAWING and now_ms >= state.settle_until_ms then
    waiting[3] = redis.call('ZCARD', LINE)
  end
  return waiting
end

local reply = {}
for i = 1, #ARGV - 1, 4 do
  local visitor, score, issued_ms, may_enter = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), ARGV[i + 3] == '1'
  local waiting = line_score(visitor)
  if waiting then
    append(reply, place(P_WAITING, waiting))
  else
    -- Not before: whoever reloads the waiting page costs one look at the line.
    loaded = loaded or load_state()
    if not loaded then
      return NOT_CONFIGURED
    elseif is_other_epoch(ARGV[#ARGV]) then
      return OTHER_EPOCH
    end
    local slot, ended = slot_of(visitor)
    slot = slot or roster_place(visitor)
    if slot then
      append(reply, slot)
    elseif not score then
      append(reply, newcomer(visitor, may_enter))
    elseif ended then
      append(reply, place(P_NONE))
    else
      append(reply, restore(visitor, score, issued_ms))
    end
  end
end
save()
return reply
