// Prints how many tokens the result of tools/list has. Usage: node tokens.mjs FILE
import {readFileSync} from 'node:fs'
import {encode} from 'gpt-tokenizer'

console.log(encode(JSON.stringify(JSON.parse(readFileSync(process.argv[2], 'utf8')).result)).length)
