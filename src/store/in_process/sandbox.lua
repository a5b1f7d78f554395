-- Makes a bare Lua 5.1 look like the one Redis runs scripts in.
--
-- Receives: command(...) -> true, reply | false, error text   (runs one command)
--           sha1hex(text) -> hex
-- Returns:  environment table for scripts, run(script, sha, keys, args) -> true, reply | false, error text

local command, sha1hex = ...
local error, pcall, rawget, select, tostring, type = error, pcall, rawget, select, tostring, type
local find, gsub, match, sub = string.find, string.gsub, string.match, string.sub

-- A table that can be read but not changed, nor asked for what it does not have.
local function frozen(content, missing)
    setmetatable(content, {
        __index = function(_, name)
            if missing then error(missing .. " '" .. tostring(name) .. "'", 2) end
        end,
    })
    return setmetatable({}, {
        __index = content,
        __newindex = function() error('Attempt to modify a readonly table', 2) end,
        __metatable = false,
    })
end

-- "CODE text" stays; a text without a code gets Redis' general one.
local function error_reply(text)
    if type(text) ~= 'string' then return { err = 'ERR wrong number or type of arguments' } end
    text = gsub(text, '^%-', '')
    if not find(text, ' ', 1, true) then text = 'ERR ' .. text end
    return { err = text }
end

-- The script's line that called the function that asks; none after a tail call (`return redis.call(…)`).
local function callers_line()
    local _, where = pcall(error, '', 4)
    return match(where, ':(%d+):')
end

local redis = {
    error_reply = error_reply,
    sha1hex = sha1hex,
    status_reply = function(text)
        if type(text) ~= 'string' then return { err = 'ERR wrong number or type of arguments' } end
        return { ok = text }
    end,
    pcall = function(...)
        local ok, reply = command(...)
        if ok then return reply end
        return { err = reply }
    end,
    call = function(...)
        local ok, reply = command(...)
        if ok then return reply end
        error({ err = reply, line = callers_line() })
    end,
}

-- As in Redis 7, a caught error of a command is its text.
local function caught(ok, problem, ...)
    if not ok and type(problem) == 'table' and type(problem.err) == 'string' then return ok, problem.err end
    return ok, problem, ...
end

local function raise(problem, level)
    if type(problem) == 'table' then problem.line = callers_line() end
    level = level or 1
    error(problem, level > 0 and level + 1 or 0)
end

local globals = {
    assert = assert, error = raise, getmetatable = getmetatable, ipairs = ipairs, next = next, pairs = pairs,
    pcall = function(...) return caught(pcall(...)) end, rawequal = rawequal, rawget = rawget, rawset = rawset, select = select,
    setmetatable = setmetatable, tonumber = tonumber, tostring = tostring, type = type, unpack = unpack,
    xpcall = xpcall, math = math, string = string, table = table, redis = frozen(redis),
    _VERSION = _VERSION,
}
-- Scripts must give the same result whenever they run.
math.random, math.randomseed = nil, nil
-- Compiled code can break the VM.
string.dump = nil

local environment = frozen(globals, 'Script attempted to access nonexistent global variable')

local function run(script, sha, keys, args)
    globals.KEYS, globals.ARGV = keys, args
    local ok, reply = pcall(script)
    globals.KEYS, globals.ARGV = nil, nil
    if ok then return true, reply end
    local text, line = 'ERR unknown error', nil
    if type(reply) == 'table' then
        text, line = tostring(rawget(reply, 'err') or text), rawget(reply, 'line')
    else
        text = 'ERR ' .. tostring(reply)
        line = match(text, '^ERR user_script:(%d+):')
    end
    return false, text .. ' script: ' .. sha .. ', on @user_script' .. (line and ':' .. line or '') .. '.'
end

return environment, run
