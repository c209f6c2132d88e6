// SPDX-License-Identifier: Apache-2.0
// Prints `ok` or `not ok` and a name for each check. Opens every page of a built site in Chromium at the widths of a phone and of a desktop: no page is wider than the window, none logs an
// error or asks another host. Then tries the search and the dark mode. Usage: node browse.mjs SITE SCREENSHOTS CHROMIUM
import { createServer } from 'node:http'
import { readFile } from 'node:fs/promises'
import { mkdirSync, readdirSync } from 'node:fs'
import { extname, join, normalize } from 'node:path'
import { chromium } from 'playwright-core'

const [site, screenshots, executablePath] = process.argv.slice(2)
const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.woff2': 'font/woff2', '.json': 'application/json' }
const server = createServer(async (request, response) => {
  const path = normalize(decodeURI(new URL(request.url, 'http://site').pathname)).replace(/\/$/, '/index.html')
  try {
    const bytes = await readFile(join(site, path))
    response.writeHead(200, { 'content-type': types[extname(path)] ?? 'application/octet-stream' }).end(bytes)
  } catch {
    response.writeHead(404).end()
  }
})
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
const address = `http://127.0.0.1:${server.address().port}`

let failed = false
function check(name, faults) {
  console.log(faults.length === 0 ? `ok ${name}` : `not ok ${name}: ${faults.join('; ')}`)
  failed ||= faults.length > 0
}

const browser = await chromium.launch({
  executablePath,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
})
mkdirSync(screenshots, { recursive: true })
const pages = readdirSync(site, { recursive: true }).filter((file) => file.endsWith('.html') && !file.startsWith('api/') && file !== '404.html')
for (const [name, width, height] of [['phone', 390, 844], ['desktop', 1280, 900]]) {
  const context = await browser.newContext({ viewport: { width, height } })
  const page = await context.newPage()
  const noted = []
  page.on('console', (message) => message.type() === 'error' && noted.push(message.text()))
  page.on('pageerror', (error) => noted.push(String(error)))
  page.on('request', (request) => request.url().startsWith(address) || request.url().startsWith('data:') || noted.push(`asks ${request.url()}`))
  for (const file of pages) {
    noted.length = 0
    await page.goto(`${address}/${file}`, { waitUntil: 'load' })
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)
    check(`${file}, ${name}`, wide > 0 ? [`${wide} pixels too wide`, ...noted] : [...noted])
    await page.screenshot({ path: join(screenshots, `${name}-${file.replaceAll('/', '-').replace('.html', '')}.png`) })
  }
  await page.goto(`${address}/`)
  await page.locator('.VPNavBarSearch button').first().click()
  await page.locator('.search-input').fill('allReduce')
  await page.locator('.results .result').first().waitFor({ timeout: 10_000 }).catch(() => {})
  check(`search without a server, ${name}`, (await page.locator('.results .result').count()) > 0 ? [] : ['finds no allReduce'])
  await page.keyboard.press('Escape')
  if (name === 'desktop') {
    const isDark = () => page.evaluate(() => document.documentElement.classList.contains('dark'))
    const before = await isDark()
    await page.locator('.VPNavBarAppearance button').click()
    check('dark mode', (await isDark()) !== before ? [] : ['the switch changes nothing'])
    await page.screenshot({ path: join(screenshots, 'desktop-dark.png') })
  }
  await page.goto(`${address}/api/index.html`)
  check(`Javadoc, ${name}`, (await page.locator('a[href*="org/windlass/package-summary.html"]').count()) > 0 ? [] : ['no package org.windlass'])
  await context.close()
}
await browser.close()
server.close()
process.exit(failed ? 1 : 0)
