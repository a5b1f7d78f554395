-- Purpose: gives each arrival one place, in order. The repeat of a join only reads.
-- KEYS: KEYS[1] line, KEYS[2] seen, KEYS[3] called, KEYS[4] inside, KEYS[5] state, KEYS[6] notes, KEYS[7] over, KEYS[8] roster
-- ARGV: four per arrival: visitor, proven score or '', when the proof was issued in ms or '', 1 if an idle room may let
--   them straight in; then the epoch the caller knows or 0 (replies -2 if it is another)
-- Reply: a place per arrival, flat
--
-- One command finds all who wait, one who is called, one who is inside; one writes all who come to wait.

local visitors = visitors_of(4)
local scores = scores_of(LINE, visitors)
local unknown = {}
for i, visitor in ipairs(visitors) do
  if not scores[i] then
    unknown[#unknown + 1] = visitor
  end
end
local mode_now
-- Not before: whoever reloads the waiting page costs one look at the line.
if #unknown > 0 then
  if not load_state() then
    return NOT_CONFIGURED
  elseif is_other_epoch(ARGV[#ARGV]) then
    return OTHER_EPOCH
  end
  mode_now = mode()
end

-- Who is in none of the sets, until this run deals with them.
local strangers = {}
local called, inside = scores_of(CALLED, unknown), scores_of(INSIDE, unknown)
for i, visitor in ipairs(unknown) do
  strangers[visitor] = not called[i] and not inside[i]
end

-- Newcomers who wait, as ZADD takes them, and how long the line is without them. They are written before anything
-- else looks for them.
local to_line, to_seen, length = {}, {}, nil

local function write_newcomers()
  write('ZADD', LINE, to_line)
  write('ZADD', SEEN, to_seen)
  to_line, to_seen, length = {}, {}, nil
end

-- Straight in: only while nobody present waits, so nobody is overtaken (G3).
local function may_pass()
  if mode_now ~= OPEN or now_ms < state.settle_until_ms or #to_line > 0 then
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

local function waits(visitor, score)
  to_line[#to_line + 1], to_line[#to_line + 2] = text(score), visitor
  to_seen[#to_seen + 1], to_seen[#to_seen + 2] = text(now_ms), visitor
  set('last_score', score)
  add('joined_total', 1)
  -- The last of the line is behind everybody, which is known here at no cost; unless others are still to come before
  -- them, by the draw or back from a lost history.
  if mode_now == DRAWING or now_ms < state.settle_until_ms then
    return place(P_WAITING, score)
  end
  length = length or redis.call('ZCARD', LINE)
  return place(P_WAITING, score, length + #to_line / 2)
end

local function newcomer(visitor, may_enter)
  if not takes_visitors() then
    return place(P_NOT_OPEN, mode_now)
  end
  local score = math.max(now_us, state.last_score + 1)
  -- An opening that was put off after the draw does not make another.
  if mode_now == PREQUEUE and state.lottery == 1 and state.drawn == 0 and not is_sealed() then
    -- Nobody takes part in a draw whose seed could still be chosen.
    if redis.call('HEXISTS', STATE, 'commitment') == 0 then
      return place(P_NOT_OPEN, SCHEDULED)
    end
    return enter_roster(visitor, math.max(score, state.last_over + 1))
  end
  if may_enter and may_pass() then
    take('call', 1)
    add('called_total', 1)
    set('last_score', score)
    return admit(visitor, score, now_ms)
  end
  return waits(visitor, score)
end

local function arrive(visitor, proven_score, issued_ms, may_enter)
  local slot, ended
  if not strangers[visitor] then
    write_newcomers()
    local waiting = line_score(visitor)
    if waiting then
      return place(P_WAITING, waiting)
    end
    slot, ended = slot_of(visitor)
  end
  strangers[visitor] = false
  slot = slot or roster_place(visitor)
  if slot then
    return slot
  elseif not proven_score then
    return newcomer(visitor, may_enter)
  elseif ended then
    return place(P_NONE)
  end
  write_newcomers()
  return restore(visitor, proven_score, issued_ms)
end

local reply = {}
for i, visitor in ipairs(visitors) do
  local waiting = score_in_line(scores[i])
  if waiting then
    append_waiting(reply, waiting)
  else
    local proven_score, issued_ms, may_enter = tonumber(ARGV[4 * i - 2]), tonumber(ARGV[4 * i - 1]), ARGV[4 * i] == '1'
    append(reply, arrive(visitor, proven_score, issued_ms, may_enter))
  end
end
write_newcomers()
save()
return reply
