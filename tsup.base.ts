import type { Options } from 'tsup'

/** The build every public package shares: ESM and CommonJS, types beside each, Node built-ins kept as `node:`. */
export const library = (entry: Record<string, string> = { index: 'src/index.ts' }): Options => ({
  entry,
  format: ['esm', 'cjs'],
  target: 'node20',
  platform: 'node',
  dts: { resolve: ['@k3/native-kit'] },
  noExternal: ['@k3/native-kit'], // private: its code is bundled into each addon package
  sourcemap: true,
  clean: true,
  splitting: false,
  removeNodeProtocol: false,
  // `import.meta` is empty in the CommonJS build on purpose: see src/root.ts of the addon packages
  esbuildOptions(options) {
    options.logOverride = { 'empty-import-meta': 'silent' }
  }
})
